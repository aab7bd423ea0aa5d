// Makes the component: puts the contract's types into the core module, then wraps it.
// node component.mjs CORE.wasm PLUGIN.wit WORLD COMPONENT.wasm
import { readFile, writeFile } from 'node:fs/promises';
import { componentEmbed, componentNew } from '@bytecodealliance/jco-transpile/wasm-tools';

const [core, wit, world, component] = process.argv.slice(2);
const embedded = await componentEmbed({ binary: await readFile(core), witSource: await readFile(wit, 'utf8'), world });
await writeFile(component, await componentNew(embedded, []));
