import { assertEquals } from "../assert.ts";
import { staticImports } from "../static_imports.ts";

Deno.test("the server starts without a schema library or a parser of YAML", async () => {
  for (const path of ["src/server/app.ts", "src/server/serve.ts"]) {
    const packages = (await staticImports(path)).filter((specifier) => specifier.startsWith("npm:"));
    assertEquals(
      [...new Set(packages.map((specifier) => specifier.replace(/^npm:\/?([^@]+)@.*$/, "$1")))],
      path.endsWith("app.ts") ? ["hono"] : [],
    );
  }
});
