// Lets only records of one region pass: those whose header "region" is what the settings say, {"region": "eu"} by
// default. What has no such header stays.
import { bytes, equal, recordPlugin } from './tidegate.js';

const HEADER = bytes('region');
let region = bytes('eu');

function init(_link, settings) {
  for (const member of Object.keys(settings)) {
    if (member !== 'region') throw [{ at: `/${member}`, message: 'there is no such setting; there is: region' }];
  }
  if (settings.region === undefined) return;
  if (typeof settings.region !== 'string') throw [{ at: '/region', message: 'must be a string' }];
  region = bytes(settings.region);
}

function edit(record) {
  const found = record.header(HEADER);
  if (found === undefined || !equal(found, region)) record.drop();
}

export const { lifecycle, records } = recordPlugin({
  name: 'region-only',
  version: '0.1.0',
  init,
  needs: { headers: true, headerNames: ['region'] },
  edit,
});
