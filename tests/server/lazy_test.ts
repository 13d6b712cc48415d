import { BUILTIN_IDS } from "../../src/app/module_table.ts";
import { assertEquals } from "../assert.ts";
import { staticImports, wholeGraph } from "../static_imports.ts";

Deno.test("serve starts with no package but Hono: zod, the YAML parser and others are loaded when needed", async () => {
  assertEquals(packagesIn(await staticImports("src/cli/commands/serve.ts")), ["hono"]);
});

Deno.test("a command line starts without the server, the runtime and packages", async () => {
  const graph = await staticImports("main.ts");
  const later = ["src/server/app.ts", "src/app/runtime.ts", "src/cli/commands/run.ts"];
  assertEquals(graph.filter((url) => later.some((path) => url.endsWith(path))), []);
  assertEquals(packagesIn(graph), []);
});

Deno.test("the first run loads no package, and of Node only its timers and asynchronous contexts", async () => {
  const files = ["src/app/create_services.ts", "src/store/sqlite/sqlite_store.ts"];
  for await (const { name, isDirectory } of Deno.readDir(new URL("modules/", ROOT))) {
    if (isDirectory && BUILTIN_IDS.has(name)) files.push(`modules/${name}/mod.ts`);
  }
  const loaded = new Set((await Promise.all(files.map(staticImports))).flat());
  assertEquals(packagesIn([...loaded]), []);
  const of_node = [...loaded].filter((specifier) => specifier.startsWith("node:"));
  assertEquals(of_node.sort(), ["node:async_hooks", "node:timers"]);
});

Deno.test("serve and the first run of a JSON plan load no reader of text and nothing that explains plans", async () => {
  const files = ["src/cli/commands/serve.ts", "src/app/create_services.ts"];
  const loaded = (await Promise.all(files.map(staticImports))).flat();
  const readers = ["plan/parse/parse.ts", "plan/parse/json_tree.ts", "plan/parse/yaml_tree.ts"];
  const bodies = ["server/body/document.ts", "server/body/multipart.ts"];
  const later = [...readers, ...bodies, "plan/explain.ts", "plan/red_flags.ts"]
    .map((path) => new URL(`src/${path}`, ROOT).href);
  assertEquals(later.filter((url) => loaded.includes(url)), []);
  const found = await wholeGraph("main.ts");
  assertEquals(later.filter((url) => !found.includes(url)), []);
});

Deno.test("imports are literal: Deno finds every file and package from main.ts and the first files of children", async () => {
  const found = new Set((await Promise.all(["main.ts", ...CHILDREN].map(wholeGraph))).flat());
  // templates and the page are read as text; other programs load the client
  const read = /^src\/(cli\/templates|client|server\/page\/app)\//;
  const own = [...sourceFiles("src/")].filter((path) => !read.test(path));
  const missing = own.filter((path) => !found.has(new URL(path, ROOT).href));
  assertEquals(missing, []);
  const packages = (await Promise.all(CHILDREN.map(wholeGraph))).flatMap(packagesIn);
  assertEquals(packages.filter((name) => !packagesIn([...found]).includes(name)), []);
});

Deno.test("only modules of plans and the WebAssembly of esbuild are imported by a computed name", () => {
  const computed = [...sourceFiles("src/"), ...sourceFiles("modules/"), "main.ts"].flatMap((path) => {
    const found: string[] = [];
    const visitor: Deno.lint.LintVisitor = {
      ImportExpression: ({ source }) => {
        if (source.type !== "Literal") found.push(path);
      },
    };
    const text = Deno.readTextFileSync(new URL(path, ROOT));
    Deno.lint.runPlugin({ name: "imports", rules: { visit: { create: () => visitor } } }, path, text);
    return found;
  });
  assertEquals(computed.sort(), [
    "src/loader/bundler/bundler_in_process.ts", // wasm_source.js
    "src/loader/link.ts", // the code of a module, as a data: URL
    "src/loader/link.ts",
    "src/sandbox/worker_runtime/main.ts", // the same in a sandbox
  ]);
});

const ROOT = new URL("../../", import.meta.url);

/** First files of child processes and workers. */
const CHILDREN = [
  "src/sandbox/guest_child.ts",
  "src/sandbox/worker_runtime/main.ts",
  "src/store/sqlite/worker.ts",
  "src/app/validation/validator_child.ts",
  "src/loader/bundler/bundler_child.ts",
];

function* sourceFiles(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(new URL(folder, ROOT))) {
    if (isDirectory) yield* sourceFiles(`${folder}${name}/`);
    else if (name.endsWith(".ts")) yield `${folder}${name}`;
  }
}

/** Returns the names of packages in a graph, each once. */
function packagesIn(graph: readonly string[]): string[] {
  const packages = graph.filter((specifier) => specifier.startsWith("npm:"));
  return [...new Set(packages.map((specifier) => specifier.replace(/^npm:\/?(@?[^@]+)@.*$/, "$1")))].sort();
}
