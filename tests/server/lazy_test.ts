import { assert, assertEquals } from "../assert.ts";
import { graphAtStart, staticImports } from "../static_imports.ts";

Deno.test("the server starts without a schema library or a parser of YAML", async () => {
  for (const path of ["src/server/app.ts", "src/server/serve.ts"]) {
    assertEquals(packagesIn(await staticImports(path)), path.endsWith("app.ts") ? ["hono"] : []);
  }
});

Deno.test("serve starts without its routes, the runtime and any package", async () => {
  const graph = await graphAtStart("main.ts");
  const later = [
    "src/server/routes.ts",
    "src/app/runtime.ts",
    "src/cli/backend.ts",
    "src/cli/other_commands.ts",
  ];
  assertEquals(graph.filter((one) => later.some((path) => one.endsWith(path))), []);
  assertEquals(packagesIn(await staticImports("main.ts")), []);
  assert(graph.some((one) => one.endsWith("src/server/front.ts")));
  assert(graph.length < 100, `${graph.length} files are read before the first line`);
});

Deno.test("deno run downloads every package before the first line of the program", async () => {
  const later = ["backend", "children", "embedded", "other_commands"].map((name) => `src/cli/${name}.ts`);
  const used = await Promise.all([...later, "src/sandbox/root/root.ts"].map(graphAtStart));
  assertEquals(packagesIn(await graphAtStart("main.ts")), packagesIn(used.flat()));
});

/** Returns the names of packages in a graph, each once. */
function packagesIn(graph: readonly string[]): string[] {
  const packages = graph.filter((specifier) => specifier.startsWith("npm:"));
  return [...new Set(packages.map((specifier) => specifier.replace(/^npm:\/?(@?[^@]+)@.*$/, "$1")))].sort();
}
