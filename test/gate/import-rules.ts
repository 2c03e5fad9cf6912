/**
 * Which part of the product may import which: the house drawn as a table, and its check.
 *
 * `reach` names what each part may import beside itself; whatever it does not name is refused, type
 * imports included. A third-party package is imported by one file, so that replacing it is a change
 * in one place; guards and the dashboard may have their own. Packages and Node modules are refused
 * where the table does not allow them. Run by imports.test.ts.
 */

import {
  cruise,
  type ICruiseResult,
  type IForbiddenRuleType,
  type IModule,
  type IRegularForbiddenRuleType,
} from 'dependency-cruiser';

/** For each part of src: the parts that it may import. Downhill only. */
export const reach: Record<string, readonly string[]> = {
  limits: [],
  collections: ['limits'],
  core: ['limits', 'collections'],
  wire: ['limits', 'collections', 'core'],
  observe: ['limits', 'collections'],
  replica: ['limits', 'collections', 'core', 'wire', 'observe'],
  io: ['limits', 'collections', 'core', 'wire', 'replica', 'observe'],
  workers: ['limits', 'collections', 'core', 'wire', 'replica', 'io', 'observe'],
  server: ['limits', 'collections', 'core', 'wire', 'replica', 'io', 'workers', 'observe'],
  client: ['limits', 'collections', 'wire'],
  guards: ['limits', 'collections', 'wire', 'client'],
  dashboard: ['limits', 'collections', 'wire', 'client'],
  cli: ['limits', 'collections', 'wire', 'observe', 'client', 'guards', 'io', 'server'],
};

/** Parts that see only their arguments: no Node module, whatever its name. */
const withoutNode = ['limits', 'collections', 'core', 'wire', 'dashboard'];
/** Parts without third-party packages. Wire is left out: it owns the codec. */
const withoutPackages = ['limits', 'collections', 'core', 'replica'];

function folderOf(part: string): string {
  return part === 'limits' ? '^src/limits\\.ts$' : `^src/${part}/`;
}

function rule(name: string, from: string, to: IRegularForbiddenRuleType['to']): IForbiddenRuleType {
  return { name, severity: 'error', from: { path: from }, to };
}

function downhillRules(): IForbiddenRuleType[] {
  const rules: IForbiddenRuleType[] = [];
  for (const [part, below] of Object.entries(reach)) {
    const allowed = [part, ...below].map(folderOf);
    rules.push(
      rule(`${part}-imports-downhill`, folderOf(part), { path: '^src/', pathNot: allowed }),
    );
  }
  return rules;
}

/** The rules as dependency-cruiser takes them. */
export const importRules: IForbiddenRuleType[] = [
  ...downhillRules(),
  rule('raft-knows-no-locks', '^src/core/raft/', { path: '^src/core/locks/' }),
  rule('locks-know-no-raft', '^src/core/locks/', { path: '^src/core/raft/' }),
  rule('no-node-modules', `^src/(${withoutNode.join('|')})[./]`, { dependencyTypes: ['core'] }),
  rule('replica-has-no-devices', '^src/replica/', {
    dependencyTypes: ['core'],
    pathNot: '^(node:)?(assert|buffer)$',
  }),
  rule('no-packages', `^src/(${withoutPackages.join('|')})[./]`, { path: 'node_modules' }),
  rule('no-development-packages', '^src/', { dependencyTypes: ['npm-dev', 'npm-no-pkg'] }),
  rule('src-stands-alone', '^src/', { path: '^(test|loadtest|native-bench|dist|dist-test)/' }),
  rule('resolvable', '^src/', { couldNotResolve: true }),
  rule('no-cycles', '^src/', { circular: true }),
];

/** Reads every import below src of the project in `folder`. */
export async function readImports(folder: string): Promise<ICruiseResult> {
  const { output } = await cruise(['src'], {
    baseDir: folder,
    validate: true,
    ruleSet: { forbidden: importRules },
    tsPreCompilationDeps: true,
    doNotFollow: { path: ['node_modules'] },
    exclude: { path: ['\\.mjs$'] },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'types'],
    },
  });
  if (typeof output === 'string') throw new Error('dependency-cruiser gave text, wanted a result');
  return output;
}

/** One line for each import that breaks a rule. */
export function brokenRules(result: ICruiseResult): string[] {
  return result.summary.violations.map(
    ({ rule: broken, from, to }) => `${broken.name}: ${from} → ${to}`,
  );
}

function packageOf(module: string): string {
  const words = module.split('/');
  const depth = module.startsWith('@') ? 2 : 1;
  return words.slice(0, depth).join('/');
}

/** One line for each package that more than one file imports, guards and dashboard apart. */
export function sharedPackages(modules: readonly IModule[]): string[] {
  const users = new Map<string, Set<string>>();
  for (const { source, dependencies } of modules) {
    if (!source.startsWith('src/') || /^src\/(guards|dashboard)\//.test(source)) continue;
    for (const { module, dependencyTypes } of dependencies) {
      const isPackage = dependencyTypes.some((type) => type.startsWith('npm'));
      if (!isPackage) continue;
      const name = packageOf(module);
      users.set(name, (users.get(name) ?? new Set()).add(source));
    }
  }
  const lines: string[] = [];
  for (const [name, files] of users) {
    if (files.size > 1) lines.push(`${name} is imported by ${[...files].sort().join(', ')}`);
  }
  return lines;
}
