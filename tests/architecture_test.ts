/**
 * Rules of design that the compiler does not check: directions of imports, globals of the kernel, places of
 * package specifiers. They are checked on the syntax tree of Deno's linter.
 */
import { PACKAGE_SPECIFIERS, SDK_SPECIFIERS } from "../src/loader/fetch/specifiers.ts";
import { installSdk } from "../src/sdk/sdk_global.ts";
import { assert, assertEquals } from "./assert.ts";

const ROOT = new URL("../", import.meta.url);

/** Folder of src → folders of src that it may import; see also `TYPES_ONLY`. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  client: [],
  docs: [],
  text: [],
  process: ["sdk"],
  sdk: [],
  kernel: ["sdk"],
  testing: ["sdk", "kernel"],
  plan: ["text", "process", "sdk"],
  bundle: ["text", "sdk", "plan"],
  policy: ["text", "process", "sdk", "plan"],
  loader: ["text", "process", "sdk", "plan", "policy"],
  sandbox: ["text", "process", "sdk", "policy"],
  store: ["text", "process", "sdk"],
  runs: ["text", "process", "sdk", "kernel", "plan", "policy", "store"],
  telemetry: ["sdk", "store"],
  app: [
    "text",
    "process",
    "sdk",
    "kernel",
    "testing",
    "plan",
    "bundle",
    "policy",
    "loader",
    "sandbox",
    "store",
    "runs",
    "telemetry",
  ],
  server: ["docs", "text", "process", "sdk", "plan", "policy", "runs", "telemetry"],
  settings: ["text", "process", "sdk", "plan", "policy", "store", "app"],
  deploy: ["text", "process", "sdk", "plan", "policy", "store", "app", "server", "settings"],
  cli: [
    "client",
    "docs",
    "text",
    "process",
    "sdk",
    "kernel",
    "plan",
    "bundle",
    "policy",
    "loader",
    "sandbox",
    "store",
    "runs",
    "app",
    "server",
    "settings",
    "deploy",
  ],
};

/** Folder of src → folders of which it may import only types. */
const TYPES_ONLY: Readonly<Record<string, readonly string[]>> = {
  server: ["app", "kernel", "store"],
  telemetry: ["kernel", "runs"],
};

/** Files that may create objects of all folders: the entry point of the library. */
const COMPOSES: ReadonlySet<string> = new Set(["src/server/mod.ts"]);

/** The entry point of the test kit, beside those of the SDK: it exports `src/testing`. */
const TEST_KIT = "src/sdk/testing.ts";

/**
 * Entry points that modules may import, besides their own files and packages of the import map. `preamp`
 * would load zod with the first session.
 */
const MODULE_IMPORTS: ReadonlySet<string> = new Set([
  "preamp/base",
  "preamp/loop",
  "preamp/context",
  "preamp/provider",
  "preamp/web",
]);

/** Folders of `modules` that are no module: several modules share them. */
const SHARED_BY_MODULES: readonly string[] = [
  "modules/ai-sdk/",
  "modules/files/",
  "modules/shell/",
  "modules/worker/",
];

interface Import {
  readonly specifier: string;
  /** Whether it imports only types. */
  readonly types: boolean;
  /** Whether it is an `import()`, which loads the file when it runs. */
  readonly late: boolean;
}

interface SourceFile {
  /** Path from the root, such as `src/sdk/mod.ts`. */
  readonly path: string;
  readonly text: string;
}

function* sourceFiles(folder: string): Generator<SourceFile> {
  const url = new URL(`${folder}/`, ROOT);
  let entries: Deno.DirEntry[];
  try {
    entries = [...Deno.readDirSync(url)];
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  for (const { name, isDirectory } of entries) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* sourceFiles(path);
    else if (/(?<!\.d)\.tsx?$/.test(name)) yield { path, text: Deno.readTextFileSync(new URL(name, url)) };
  }
}

type Visitor = Deno.lint.LintVisitor;

/** Walks the syntax tree of a file. */
function visit({ path, text }: SourceFile, visitor: Visitor): void {
  Deno.lint.runPlugin({ name: "architecture", rules: { visit: { create: () => visitor } } }, path, text);
}

/** Imports of the files that were parsed before: most tests ask for those of all files. */
const parsed = new WeakMap<SourceFile, Import[]>();

function importsOf(file: SourceFile): Import[] {
  const known = parsed.get(file);
  if (known) return known;
  const imports: Import[] = [];
  parsed.set(file, imports);
  const add = (source: unknown, types: boolean, late = false) => {
    const value = textOf(source);
    if (typeof value === "string") imports.push({ specifier: value, types, late });
  };
  visit(file, {
    ImportDeclaration: (node) => add(node.source, node.importKind === "type"),
    ExportAllDeclaration: (node) => add(node.source, node.exportKind === "type"),
    ExportNamedDeclaration: (node) => add(node.source, node.exportKind === "type"),
    ImportExpression: (node) => add(node.source, false, true),
    TSImportType: (node) => add((node.argument as { literal?: unknown }).literal ?? node.argument, true),
  });
  return imports;
}

/** Returns the text of a literal, also of a template without values. */
function textOf(node: unknown): unknown {
  const { value, quasis } = (node ?? {}) as { value?: unknown; quasis?: readonly { cooked: string }[] };
  return quasis?.length === 1 ? quasis[0]!.cooked : value;
}

/** Returns the target of an import: a path from the root, or the specifier of a package. */
function reach(from: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  return new URL(specifier, new URL(from, ROOT)).href.slice(ROOT.href.length);
}

function folderOf(path: string): string {
  return path.split("/")[1] ?? "";
}

const OURS = [...sourceFiles("src")];
const MODULES = [...sourceFiles("modules")];

Deno.test("importsOf() sees every form of import and nothing else", () => {
  const text = `
    import a from "./a.ts"; import type { B } from "./b.ts"; export * from "./c.ts"; export { d } from "./d.ts";
    export type { E } from "./e.ts"; const f = await import("./f.ts"); // import "./no.ts"
    const g = 'import "./no.ts"'; export const h = 1; import(\`./i.ts\`); let j: import("./j.ts").J;
    export * as k from "./k.ts"; import(\`./\${g}.ts\`);`;
  assertEquals(importsOf({ path: "x.ts", text }), [
    { specifier: "./a.ts", types: false, late: false },
    { specifier: "./b.ts", types: true, late: false },
    { specifier: "./c.ts", types: false, late: false },
    { specifier: "./d.ts", types: false, late: false },
    { specifier: "./e.ts", types: true, late: false },
    { specifier: "./f.ts", types: false, late: true },
    { specifier: "./i.ts", types: false, late: true },
    { specifier: "./j.ts", types: true, late: false },
    { specifier: "./k.ts", types: false, late: false },
  ]);
});

Deno.test("folders of src import in the directions of src/docs/architecture.md", () => {
  const wrong: string[] = [];
  for (const file of OURS) {
    const own = folderOf(file.path);
    for (const { specifier, types } of importsOf(file)) {
      const target = reach(file.path, specifier);
      if (!target.startsWith("src/")) {
        if (target.startsWith("modules/") && own !== "app") wrong.push(`${file.path} → ${target}`);
        continue;
      }
      const folder = folderOf(target);
      const typed = (types || COMPOSES.has(file.path)) && TYPES_ONLY[own]?.includes(folder);
      if (file.path === TEST_KIT && folder === "testing") continue;
      if (folder !== own && !MAY_IMPORT[own]?.includes(folder) && !typed) {
        wrong.push(`${file.path} → ${target}`);
      }
    }
  }
  assertEquals(wrong, []);
});

Deno.test("no file imports itself through other files, not even for types", () => {
  const graph = new Map([...OURS, ...MODULES].map((file) => [
    file.path,
    importsOf(file).filter(({ late }) => !late).map(({ specifier }) => reach(file.path, specifier)),
  ]));
  assertEquals(circlesIn(graph), []);
});

Deno.test("circlesIn() returns the files of a circle in order, and nothing for other graphs", () => {
  const graph = new Map([["a", ["b", "c"]], ["b", ["c"]], ["c", ["d"]], ["d", ["b"]]]);
  assertEquals(circlesIn(graph), [["b", "c", "d"]]);
  assertEquals(circlesIn(new Map([["a", ["b", "c"]], ["b", ["c"]], ["c", []]])), []);
});

/** Returns the circles that a depth-first walk finds; a graph without circles has none. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string) => {
    const start = path.indexOf(file);
    if (start >= 0) return void circles.push(path.slice(start));
    if (done.has(file)) return;
    path.push(file);
    graph.get(file)?.forEach(visit);
    path.pop();
    done.add(file);
  };
  [...graph.keys()].forEach(visit);
  return circles;
}

Deno.test("every folder of src is in the table", () => {
  const folders = [...Deno.readDirSync(new URL("src/", ROOT))].filter((entry) => entry.isDirectory);
  assertEquals(folders.map(({ name }) => name).filter((name) => !(name in MAY_IMPORT)), []);
});

Deno.test("modules import only the SDK and their own files", () => {
  const wrong: string[] = [];
  for (const file of MODULES) {
    const own = file.path.split("/").slice(0, 2).join("/");
    for (const { specifier } of importsOf(file)) {
      const target = reach(file.path, specifier);
      const relative = specifier.startsWith(".");
      const foreign = relative
        ? !target.startsWith(`${own}/`) && !SHARED_BY_MODULES.some((folder) => target.startsWith(folder))
        : target.startsWith("preamp") && !MODULE_IMPORTS.has(target);
      if (foreign) wrong.push(`${file.path} → ${target}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("the SDK needs no Deno but in http/, and few packages", () => {
  const packages = new Set<string>();
  const wrong: string[] = [];
  // sdk_global.ts is no part of the SDK: it gives bundles what the host provides
  const sdk = OURS.filter(({ path }) =>
    /^src\/(sdk|testing)\//.test(path) && path !== "src/sdk/sdk_global.ts"
  );
  for (const file of sdk) {
    for (const { specifier } of importsOf(file)) if (!specifier.startsWith(".")) packages.add(specifier);
    if (!file.path.startsWith("src/sdk/http/")) wrong.push(...globalsOf(file, new Set(["Deno"])));
  }
  assertEquals(wrong, []);
  assertEquals(
    [...packages].sort(),
    ["@cfworker/json-schema", "node:async_hooks", "node:crypto", "node:dns/promises", "node:timers", "zod"]
      .filter((one) => packages.has(one)),
  );
});

Deno.test("the host provides the packages of built-in modules, which can so be loaded by their source", async () => {
  const imported = MODULES.flatMap((file) => importsOf(file).filter(({ types }) => !types));
  const packages = new Set(
    imported.map(({ specifier }) => specifier).filter((name) => !/^\.|^preamp/.test(name)),
  );
  assertEquals([...packages].sort(), [...PACKAGE_SPECIFIERS]);
  await installSdk([...SDK_SPECIFIERS, ...PACKAGE_SPECIFIERS]); // throws for a name that it does not have
});

/** Exports, identifiers and imports of a file. */
interface Uses {
  readonly exports: ReadonlySet<string>;
  /** Name → number of uses in the file, with its declaration. */
  readonly mentions: ReadonlyMap<string, number>;
  /** File → names imported from it; `*`: all of them. */
  readonly imports: ReadonlyMap<string, ReadonlySet<string>>;
}

function usesOf(file: SourceFile): Uses {
  const exports = new Set<string>();
  const mentions = new Map<string, number>();
  const imports = new Map<string, Set<string>>();
  const dynamic: string[] = [];
  const take = (source: unknown, names: readonly unknown[]) => {
    const specifier = textOf(source);
    if (typeof specifier !== "string") return;
    const from = ENTRY_POINTS.get(specifier) ?? reach(file.path, specifier);
    imports.set(from, new Set([...imports.get(from) ?? [], ...names.map(String)]));
  };
  const nameOf = (node: unknown) => (node as { name?: string; value?: string }).name ?? "default";
  visit(file, {
    Identifier: (node) => void mentions.set(node.name, (mentions.get(node.name) ?? 0) + 1),
    ImportDeclaration: ({ source, specifiers }) =>
      take(source, specifiers.map((one) => one.type === "ImportSpecifier" ? nameOf(one.imported) : "*")),
    ExportAllDeclaration: ({ source }) => take(source, ["*"]),
    ExportNamedDeclaration({ source, specifiers, declaration, parent }) {
      if (parent.type !== "Program") return; // of a namespace
      if (source) take(source, specifiers.map(({ local }) => nameOf(local)));
      else for (const { exported } of specifiers) exports.add(nameOf(exported));
      const declared = declaration as { id?: unknown; declarations?: { id: unknown }[] } | null;
      for (const id of declared?.declarations?.map(({ id }) => id) ?? [declared?.id]) {
        if (id) exports.add(nameOf(id));
      }
    },
    ImportExpression: ({ source }) => void dynamic.push(String(textOf(source))),
    TSImportType: (node) => take((node.argument as { literal?: unknown }).literal ?? node.argument, ["*"]),
  });
  for (const source of dynamic) take({ value: source }, [...mentions.keys()]); // its imported names are among the identifiers
  return { exports, mentions, imports };
}

/** Specifiers of the entry points → their files. */
const ENTRY_POINTS: ReadonlyMap<string, string> = new Map(
  Object.entries(
    (JSON.parse(Deno.readTextFileSync(new URL("deno.json", ROOT))) as { exports: Record<string, string> })
      .exports,
  ).map(([name, path]) => [`preamp${name.slice(1)}`, path.slice(2)]),
);

/** Returns exports that neither their file nor another file uses. */
function unusedExports(files: readonly SourceFile[], isEntry: (path: string) => boolean): string[] {
  const uses = new Map(files.map((file) => [file.path, usesOf(file)]));
  const unused: string[] = [];
  for (const [path, { exports, mentions }] of uses) {
    if (isEntry(path)) continue;
    const takers = [...uses.values()].map(({ imports }) => imports.get(path)).filter((names) => names);
    for (const name of exports) {
      const used = (mentions.get(name) ?? 0) > 1 ||
        takers.some((names) => names!.has(name) || names!.has("*"));
      if (!used) unused.push(`${path}: ${name}`);
    }
  }
  return unused;
}

Deno.test("unusedExports() finds unused exports with every form of import", () => {
  const files = [
    {
      path: "src/a.ts",
      text: `export const a = 1; export function b() {} export class C {} export type D = 1;
        export const own = 1; use(own); export interface Lost {} declare namespace n { export type T = 1; }`,
    },
    {
      path: "src/b.ts",
      text: `import { a } from "./a.ts"; const { b } = await import("./a.ts"); type T = import("./c.ts").F;
        export { C } from "./a.ts"; import type { D } from "./a.ts";`,
    },
    { path: "src/c.ts", text: "export type F = 1;" },
  ];
  assertEquals(unusedExports(files, () => false), ["src/a.ts: Lost"]);
});

Deno.test("exports of src and modules are used outside of tests", () => {
  const entries = new Set([...ENTRY_POINTS.values(), "main.ts"]);
  const main = { path: "main.ts", text: Deno.readTextFileSync(new URL("main.ts", ROOT)) };
  const files = [...OURS, ...MODULES, ...sourceFiles(".tasks"), main];
  const isEntry = (path: string) => entries.has(path) || /^modules\/[^/]+\/mod\.ts$/.test(path);
  const unused = unusedExports(files, isEntry);
  assertEquals(unused, []);
});

/** Globals that the kernel must not use; its host gives it time and ids. */
const OUTSIDE: ReadonlySet<string> = new Set([
  "Deno",
  "fetch",
  "setTimeout",
  "setInterval",
  "clearTimeout",
  "clearInterval",
  "performance",
  "process",
  "WebSocket",
  "Worker",
  "BroadcastChannel",
]);

/** Returns uses of global names of `names`, of `Date.now()`, and of `new Date()` without a time. */
function globalsOf(file: SourceFile, names: ReadonlySet<string>): string[] {
  const found: string[] = [];
  const note = (what: string) => found.push(`${file.path}: ${what}`);
  visit(file, {
    Identifier(node) {
      if (!names.has(node.name)) return;
      const parent = node.parent as {
        type: string;
        property?: unknown;
        key?: unknown;
        computed?: boolean;
        object?: { name?: string };
      };
      const isMember = parent.type === "MemberExpression" && parent.property === node && !parent.computed;
      if (isMember && parent.object?.name !== "globalThis") return;
      const isKey = (parent.type === "Property" || parent.type.endsWith("Definition") ||
        parent.type === "TSPropertySignature" ||
        parent.type === "TSMethodSignature") && parent.key === node;
      if (!isKey) note(node.name);
    },
    MemberExpression(node) {
      const object = node.object as { name?: string };
      const property = node.property as { name?: string };
      if (names.has("Date.now") && object.name === "Date" && property.name === "now") note("Date.now");
    },
    NewExpression(node) {
      const callee = node.callee as { name?: string };
      if (names.has("Date.now") && callee.name === "Date" && node.arguments.length === 0) note("new Date()");
    },
  });
  return found;
}

Deno.test("globalsOf() finds uses, not names", () => {
  const names = new Set([...OUTSIDE, "Date.now"]);
  const clean = `
    // fetch("x"); Deno.exit()
    const text = "setTimeout(1)"; const host = { fetch: 1, performance() {} }; host.fetch; new Date(5); clock.now();
    interface Host { fetch(url: string): void; process: number }`;
  assertEquals(globalsOf({ path: "x.ts", text: clean }, names), []);
  const dirty =
    `fetch("x"); const { now } = Date; Date.now(); new Date(); globalThis.setTimeout(f, 1); const p = performance; typeof Deno;`;
  const found = globalsOf({ path: "x.ts", text: dirty }, names).map((line) => line.slice("x.ts: ".length));
  assertEquals(found.sort(), ["Date.now", "Deno", "fetch", "new Date()", "performance", "setTimeout"]);
});

Deno.test("the kernel uses no clock, timer, network or Deno global", () => {
  const names = new Set([...OUTSIDE, "Date.now"]);
  const kernel = OURS.filter(({ path }) => path.startsWith("src/kernel/"));
  assert(kernel.length > 0);
  assertEquals(kernel.flatMap((file) => globalsOf(file, names)), []);
});

/** Files of tests that may read the clock. None of them fails because it is late. */
const READS_THE_CLOCK: ReadonlySet<string> = new Set([
  "tests/app/agents_test.ts", // keeps the thread busy for a while
  "tests/contracts/leases.ts", // leases end by the clock; a machine that stood still is noticed
  "tests/e2e/escape_bare_test.ts", // how long a process is watched that should hang
  "tests/e2e/health_probe.ts", // its verdict is on the time without waits for a processor
  "tests/process/system_clock_test.ts", // the clock itself
  "tests/sdk/loop/tool_input_validation_test.ts", // replaces it
  "tests/store/postgres/postgres_store_slow_test.ts", // waits a moment
  "tests/telemetry/metrics_test.ts", // replaces it
]);

Deno.test("no test judges by the clock: machines are busy; see `support/busy_time.ts`", () => {
  const files = [...sourceFiles("tests")].filter(({ path }) => !/^tests\/(bench|fixtures)\//.test(path));
  const found = files.filter((file) => globalsOf(file, new Set(["performance"])).length > 0);
  assertEquals(found.map(({ path }) => path).filter((path) => !READS_THE_CLOCK.has(path)), []);
});

/**
 * Files that know the current folder, and what for. Only `src/cli/folder` looks for files in it that were not
 * named: what such a file may do is decided there, for all commands (src/docs/security.md#the-folder).
 */
const KNOW_CURRENT_FOLDER: Readonly<Record<string, string>> = {
  "src/app/plan_folders.ts": "relative paths of a plan without a file",
  "src/cli/author_files.ts": "folders that the command line names",
  "src/cli/chat/command.ts": "the default of ${WORKSPACE}",
  "src/cli/chat/shell_command.ts": "where a command of the person's own runs",
  "src/cli/commands/module/bundle.ts": "a file that the command line names",
  "src/cli/commands/module/validate.ts": "paths for display",
  "src/cli/commands/plan/explain.ts": "paths for display",
  "src/cli/commands/plan/import.ts": "a file that the command line names",
  "src/cli/commands/plan/vendor.ts": "a folder that the command line names",
  "src/cli/commands/run.ts": "the default of ${WORKSPACE}",
  "src/cli/commands/serve.ts": "the default of ${WORKSPACE}",
  "src/cli/commands/source/add.ts": "a source that the command line names",
  "src/cli/folder/folder.ts": "what the folder brings",
  "src/cli/folder/sentences.ts": "paths for display",
  "src/cli/mcp_json.ts": "a field of .mcp.json",
  "src/cli/module_target.ts": "a module that the command line names",
  "src/cli/plan_files.ts": "paths for display, and the default of ${WORKSPACE}",
  "src/cli/run_request.ts": "the default of ${WORKSPACE}",
  "src/cli/settings.ts": "folders that flags and variables name",
  "src/cli/source_files.ts": "the file that preamp source add changes",
  "src/cli/terminal/io.ts": "the folder itself",
  "src/deploy/folder_settings.ts": "the folder of the program, for its settings",
  "src/process/child_process.ts": "the folder of a child process",
  "src/sandbox/guest_process.ts": "the folder of a child process",
  "src/settings/paths.ts": "files that a person names",
  "src/settings/settings.ts": "folders that flags and variables name",
};

/** Names of the files of a folder that act without being named, and the files of src that have them. */
const FOLDER_FILES: Readonly<Record<string, readonly string[]>> = {
  ".env": ["src/cli/folder/folder_files.ts"],
  ".preamp/sources.yaml": ["src/cli/folder/folder_files.ts"],
  "AGENTS.md": ["src/app/project_instructions.ts"],
  "CLAUDE.md": ["src/app/project_instructions.ts"],
  // the name of the document in errors
  "preamp.yaml": [
    "src/cli/commands/init.ts", // which it writes
    "src/cli/folder/folder_files.ts",
    "src/deploy/folder_settings.ts", // of the program's own folder
    "src/policy/parse_policy.ts",
  ],
  // the default of the setting, and the person's own plans
  "plans/": [
    "src/app/named_plans.ts",
    "src/cli/folder/folder_files.ts",
    "src/deploy/folder_settings.ts", // of the program's own folder
    "src/policy/settings.ts",
  ],
};

Deno.test("only src/cli/folder looks for files of the current folder that were not named", () => {
  const knowing = new Set<string>();
  const naming: Record<string, string[]> = {};
  for (const file of [...OURS, { path: "main.ts", text: Deno.readTextFileSync(new URL("main.ts", ROOT)) }]) {
    const note = (value: unknown) => {
      if (typeof value !== "string" || !Object.hasOwn(FOLDER_FILES, value)) return;
      const files = naming[value] ??= [];
      if (!files.includes(file.path)) files.push(file.path);
    };
    visit(file, {
      Identifier: (node) => void (node.name === "cwd" && knowing.add(file.path)),
      Literal: ({ value }) => note(value),
      TemplateElement: ({ cooked }) => note(cooked),
    });
  }
  assertEquals([...knowing].sort(), Object.keys(KNOW_CURRENT_FOLDER).sort());
  assertEquals(
    Object.fromEntries(Object.entries(naming).map(([name, files]) => [name, files.sort()])),
    FOLDER_FILES,
  );
});

Deno.test("package specifiers are in deno.json only", () => {
  // the linter's no-import-prefix misses `export … from`, `import("…").T` in types, and template literals
  const files = [...OURS, ...MODULES, ...sourceFiles("tests"), ...sourceFiles(".tasks")];
  const wrong: string[] = [];
  for (const file of files.filter(({ path }) => !path.startsWith("tests/bench/peers/"))) {
    if (!/(npm|jsr|https?):/.test(file.text)) continue;
    for (const { specifier } of importsOf(file)) {
      if (/^(npm|jsr|https?):/.test(specifier)) wrong.push(`${file.path} → ${specifier}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("every bare specifier is in deno.json's import map, at an exact version", () => {
  const { imports } = JSON.parse(Deno.readTextFileSync(new URL("deno.json", ROOT))) as {
    imports: Record<string, string>;
  };
  const known = Object.keys(imports);
  const wrong: string[] = [];
  for (const file of [...OURS, ...MODULES]) {
    for (const { specifier } of importsOf(file)) {
      if (specifier.startsWith(".") || /^(node|data|file):/.test(specifier)) continue;
      if (!known.some((name) => specifier === name || specifier.startsWith(`${name}/`))) {
        wrong.push(`${file.path} → ${specifier}`);
      }
    }
  }
  assertEquals(wrong, []);
  for (const [name, target] of Object.entries(imports)) {
    if (target.startsWith("npm:")) {
      assert(/@\d+\.\d+\.\d+(-[\w.]+)?(\/.*)?$/.test(target), `${name} has no exact version: ${target}`);
    }
  }
});
