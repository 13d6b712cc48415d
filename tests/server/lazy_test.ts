import { assertEquals } from "../assert.ts";
import { staticImports, wholeGraph } from "../static_imports.ts";

Deno.test("the server starts without zod and a YAML parser", async () => {
  for (const path of ["src/server/routes.ts", "src/server/net/listen.ts"]) {
    assertEquals(packagesIn(await staticImports(path)), path.endsWith("routes.ts") ? ["hono"] : []);
  }
});

Deno.test("serve starts without its routes, the runtime and packages", async () => {
  const graph = await staticImports("main.ts");
  const later = [
    "src/server/routes.ts",
    "src/app/runtime.ts",
    "src/cli/server_backend.ts",
    "src/cli/commands/run.ts",
  ];
  assertEquals(graph.filter((url) => later.some((path) => url.endsWith(path))), []);
  assertEquals(packagesIn(graph), []);
});

Deno.test("imports are literal: Deno finds every file and package from main.ts and the first files of children", async () => {
  const found = new Set((await Promise.all(["main.ts", ...CHILDREN].map(wholeGraph))).flat());
  const missing = [...sourceFiles("src/")].filter((path) => !found.has(new URL(path, ROOT).href));
  assertEquals(missing, []);
  const packages = (await Promise.all(CHILDREN.map(wholeGraph))).flatMap(packagesIn);
  assertEquals(packages.filter((name) => !packagesIn([...found]).includes(name)), []);
});

const ROOT = new URL("../../", import.meta.url);

/** First files of child processes and workers. */
const CHILDREN = [
  "src/sandbox/child/child_main.ts",
  "src/sandbox/worker_runtime/main.ts",
  "src/app/validation/child_main.ts",
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
