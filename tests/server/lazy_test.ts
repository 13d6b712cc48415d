import { assert, assertEquals } from "../assert.ts";
import { graphAtStart, staticImports } from "../static_imports.ts";

Deno.test("the server starts without a schema library or a parser of YAML", async () => {
  for (const path of ["src/server/app.ts", "src/server/serve.ts"]) {
    const packages = (await staticImports(path)).filter((specifier) => specifier.startsWith("npm:"));
    assertEquals(
      [...new Set(packages.map((specifier) => specifier.replace(/^npm:\/?([^@]+)@.*$/, "$1")))],
      path.endsWith("app.ts") ? ["hono"] : [],
    );
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
  assertEquals(graph.filter((one) => one.startsWith("npm:") || later.some((path) => one.endsWith(path))), []);
  assert(graph.some((one) => one.endsWith("src/server/front.ts")));
  assert(graph.length < 100, `${graph.length} files are read before the first line`);
});
