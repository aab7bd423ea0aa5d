// Says what an access rule of the source becomes on the target: principals get a suffix, {"suffix": "-dr"}, and rules that
// let write are left out, since nobody but the replicator writes there.

let suffix = '';

export const lifecycle = {
  describe: () => ({ name: '{{name}}', version: '0.1.0', configSchema: undefined }),

  // Throws a list of what is wrong; `at` is a JSON pointer into the settings.
  init(_link, config) {
    const settings = JSON.parse(config);
    for (const member of Object.keys(settings)) {
      if (member !== 'suffix') throw [{ at: `/${member}`, message: 'there is no such setting; there is: suffix' }];
    }
    suffix = settings.suffix === undefined ? '' : settings.suffix;
    if (typeof suffix !== 'string') throw [{ at: '/suffix', message: 'must be a string' }];
  },

  selfTest() {},
};

// Nothing, one rule or several. A rule that allows more than the source's is refused by the host.
function mapped(acl) {
  if (acl.operation === 'WRITE') return [];
  return [{ ...acl, principal: acl.principal + suffix }];
}

export const aclMapping = {
  mapAcls: (acls) => acls.map(mapped),
};
