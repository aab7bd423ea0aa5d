// Puts a prefix before each topic's name: {"prefix": "copy."}; without settings, the source cluster and a dot.

let prefix = '';

export const lifecycle = {
  describe: () => ({ name: '{{name}}', version: '0.1.0', configSchema: undefined }),

  // Throws a list of what is wrong; `at` is a JSON pointer into the settings.
  init(link, config) {
    const settings = JSON.parse(config);
    for (const member of Object.keys(settings)) {
      if (member !== 'prefix') throw [{ at: `/${member}`, message: 'there is no such setting; there is: prefix' }];
    }
    prefix = settings.prefix === undefined ? `${link.sourceCluster}.` : settings.prefix;
    if (typeof prefix !== 'string' || prefix === '') throw [{ at: '/prefix', message: 'must be a string, and not empty' }];
  },

  selfTest() {},
};

export const topicNaming = {
  // `throw 'why'` refuses the topic: it is not copied, and the operator reads why.
  toTarget: (topic) => prefix + topic,

  // The inverse of toTarget; undefined for names that it never makes. Loops are found by it.
  toSource: (topic) => (topic.startsWith(prefix) && topic !== prefix ? topic.slice(prefix.length) : undefined),
};
