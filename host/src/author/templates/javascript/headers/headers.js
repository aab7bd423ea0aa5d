// Puts a header on each record, as the settings say: {"name": "origin", "value": "east"}.
import { bytes, recordPlugin } from './tidegate.js';

const MEMBERS = ['name', 'value'];
const settings = {};

function init(_link, given) {
  for (const member of Object.keys(given)) {
    if (!MEMBERS.includes(member)) throw [{ at: `/${member}`, message: 'there is no such setting; there are: name, value' }];
  }
  for (const member of MEMBERS) {
    if (typeof given[member] !== 'string') throw [{ at: `/${member}`, message: 'must be set, a string' }];
    settings[member] = bytes(given[member]);
  }
  if (given.name === '') throw [{ at: '/name', message: 'must not be empty' }];
}

function edit(record) {
  record.setHeader(settings.name, settings.value);
}

export const { lifecycle, records } = recordPlugin({
  name: '{{name}}',
  version: '0.1.0',
  init,
  // It changes headers without looking at anything, so nothing crosses into the plugin.
  needs: {},
  edit,
});
