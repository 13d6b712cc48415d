import { lockOf } from "../../src/plan/lock.ts";
import type { LoadContext } from "../../src/loader/types.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import {
  contextOf,
  loaderOf,
  policyOf,
  refusal,
  serveFiles,
  sharedBundler,
  specOf,
} from "../support/loader.ts";

const bundler = sharedBundler();

/** An ESM host as esm.sh is one: a package redirects to its version, and that imports by absolute path. */
function serveEsmHost() {
  const server = serveFiles({
    "mod.ts":
      `import pad from "npm:left-pad@1";\nimport { name } from "jsr:@std/x@1/name";\nexport const mount = async () => [pad("a"), name, (await import("npm:@scope/late@2/x.js")).late];`,
    "left-pad@1": () => Response.redirect(`${server.url}left-pad@1.3.0`),
    "left-pad@1.3.0": `export { default } from "/left-pad@1.3.0/es2022/left-pad.mjs";`,
    "left-pad@1.3.0/es2022/left-pad.mjs": `export default (text) => " " + text;`,
    "jsr/@std/x@1/name": `export const name = "x";`,
    "@scope/late@2/x.js": `export const late = "late";`,
  });
  return server;
}

function hosted(esm_host: string, more: Partial<LoadContext> = {}): LoadContext {
  return contextOf({ policy: policyOf({ esm_host }), ...more });
}

Deno.test("npm: and jsr: imports come from the host that the operator names, in graph and lock too", async () => {
  await using server = serveEsmHost();
  await using loader = loaderOf({ bundler });
  const spec = specOf(`${server.url}mod.ts`);
  for (const esm_host of [server.url, server.url.slice(0, -1)]) {
    const { module } = await loader.load(spec, hosted(esm_host));
    assertEquals(await (module.mount as () => unknown)(), [" a", "x", "late"]);
  }
  const graph = await loader.bundle(spec, hosted(server.url));
  assertEquals(graph.files.map(({ url }) => url.slice(server.url.length)), [
    "@scope/late@2/x.js",
    "jsr/@std/x@1/name",
    "left-pad@1.3.0",
    "left-pad@1.3.0/es2022/left-pad.mjs",
    "mod.ts",
  ]);
  assertEquals(graph.imports_refused, []);
  const lock = lockOf([{ source: spec.source, ...graph }]);
  server.files["left-pad@1.3.0/es2022/left-pad.mjs"] = "export default () => 'other';";
  await using again = loaderOf({ bundler });
  const error = await refusal(() => again.load(spec, hosted(server.url, { lock })));
  assertEquals(error.code, "module_integrity_mismatch");
});

Deno.test("npm: imports are refused where the operator names no host, with the way to bundle", async () => {
  await using server = serveEsmHost();
  await using loader = loaderOf({ bundler });
  const error = await refusal(() => loader.load(specOf(`${server.url}mod.ts`), hosted("none")));
  assertEquals(error.code, "module_invalid");
  const hint = "bundle the module with its packages (preamp module bundle), or set modules.esm_host";
  assertEquals(error.details.map(({ line, column, message, hint }) => [line, column, message, hint]), [
    [
      1,
      17,
      'Cannot import "npm:left-pad@1": npm: packages are disabled: received "npm:left-pad@1"',
      hint,
    ],
    [
      2,
      22,
      'Cannot import "jsr:@std/x@1/name": jsr: packages are disabled: received "jsr:@std/x@1/name"',
      hint,
    ],
  ]);
  assertEquals(server.requests, ["/mod.ts"]);
});

Deno.test("an npm: import of a caller's module is a URL like any other: within the allow-list", async () => {
  await using server = serveEsmHost();
  await using site = serveFiles({ "mod.ts": `export { default as mount } from "npm:left-pad@1";` });
  const context = (allow: string[]) =>
    hosted("", {
      origin: "caller",
      policy: policyOf({ allow, esm_host: server.url, private_hosts: [`127.0.0.1:${site.port}`] }),
    });
  await using loader = loaderOf({ bundler });
  const spec = specOf(`${site.url}mod.ts`);
  const error = await refusal(() => loader.load(spec, context([site.url])));
  assertEquals(error.code, "module_source_denied");
  assertMatch(error.message, /an import leads outside of modules\.allow/);
  assertEquals(server.requests, []);
  const { exports } = await loader.prepare(
    spec,
    context([site.url, `${server.url}left-pad@1`, `${server.url}left-pad@1.3.0`]),
  );
  assertEquals(exports, ["mount"]);
});

Deno.test("what is no package is refused with the form it has", async () => {
  await using server = serveFiles({ "mod.ts": `import "npm:../x"; export const mount = 1;` });
  await using loader = loaderOf({ bundler });
  const error = await refusal(() => loader.load(specOf(`${server.url}mod.ts`), hosted(server.url)));
  assertEquals([error.details[0]?.message, error.details[0]?.hint], [
    'Cannot import "npm:../x": it is not a valid npm package: received "npm:../x"',
    "write npm:name@version or npm:@scope/name@version/file",
  ]);
});
