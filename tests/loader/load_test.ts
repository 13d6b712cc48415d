import { displayErrorLocation } from "../../src/loader/link.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { contextOf, loaderOf, policyOf, refusal, serveFiles, specOf } from "../support/loader.ts";
import type { PreampError } from "../../src/sdk/errors.ts";

/** One bundler for the file: each start of it costs half a second. */
const loader = loaderOf({ fresh_ms: 0 });

Deno.test.afterAll(() => loader.close());

type Mount = (coordinator?: unknown, config?: unknown) => Promise<unknown>;

async function mountOf(
  files: Record<string, string | Uint8Array<ArrayBuffer>>,
  entry = "mod.ts",
): Promise<unknown> {
  await using server = serveFiles(files);
  const { module } = await loader.load(specOf(server.url + entry), contextOf());
  return await (module.mount as Mount)();
}

async function errorOf(
  files: Record<string, string>,
  entry = "mod.ts",
): Promise<{ error: PreampError; url: string }> {
  await using server = serveFiles(files);
  return {
    error: await refusal(() => loader.load(specOf(server.url + entry), contextOf())),
    url: server.url,
  };
}

Deno.test("load() runs a module of many files and kinds of file", async () => {
  const mounted = await mountOf({
    "mod.ts": `
      import { defineTool, z } from "preamp";
      import * as zod from "zod";
      import { join } from "./lib/join.js";
      import type { Gone } from "./nowhere.ts";
      import config from "./config.json" with { type: "json" };
      import greeting from "./greeting.txt" with { type: "text" };
      import bytes from "./raw.bin" with { type: "bytes" };
      import { element } from "./view.tsx";
      enum Level { Low = 1, High }
      export async function mount() {
        const { late } = await import("./lib/late.ts");
        const tool = defineTool({ name: "t", description: "d", input: z.object({ a: z.string() }), execute: () => "x" });
        return [join(config.parts), greeting, [...bytes], element, Level.High, late, tool.name, zod.email().safeParse("a@b.co").success];
      }`,
    "lib/join.js": `import { sep } from "../sep.mjs";\nexport const join = (parts) => parts.join(sep);`,
    "lib/late.ts": `export const late: string = "late";`,
    "sep.mjs": `export const sep = "-";`,
    "config.json": `{"parts": ["a", "b"]}`,
    "greeting.txt": `it's "text"`,
    "raw.bin": Uint8Array.of(0, 128, 255),
    "view.tsx":
      `/** @jsx h */\nconst h = (tag: string, _: unknown, text: string) => tag + text;\nexport const element = <b>don't</b>;`,
  });
  assertEquals(mounted, ["a-b", `it's "text"`, [0, 128, 255], "bdon't", 2, "late", "t", true]);
});

Deno.test("load() finds imports that a lexer cannot see", async () => {
  const files = {
    "mod.tsx": `import { a } from "./a.tsx";\nexport const mount = () => a;`,
    "a.tsx": `/** @jsxImportSource ./jsx */\nexport const a = <p>it's \`fine {1}</p>;`,
    "jsx/jsx-runtime":
      `import { tag } from "./tag.js";\nexport const jsx = (type, props) => tag(type, props);\nexport const jsxs = jsx;`,
    "jsx/tag.js": `export const tag = (type, { children }) => [type, children];`,
  };
  assertEquals(await mountOf(files, "mod.tsx"), ["p", ["it's `fine ", 1]]);
});

Deno.test("load() gives a module its own import.meta, in each of its files", async () => {
  await using server = serveFiles({
    "mod.ts":
      `import { lib } from "./lib/a.js";\nexport const mount = () => [import.meta.url, import . meta.main, lib, import.meta.resolve("./x.txt")];`,
    "lib/a.js": `export const lib = import.meta.url; // import.meta at the end`,
  });
  const { module } = await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals(await (module.mount as Mount)(), [
    `${server.url}mod.ts`,
    false,
    `${server.url}lib/a.js`,
    `${server.url}x.txt`,
  ]);
});

Deno.test("load() maps stacks to the author's file and line, and errorPlace() reads them", async () => {
  await using server = serveFiles({
    "mod.ts":
      `interface A { a: 1 }\n\nimport { fail } from "./lib.ts";\nexport async function mount(): Promise<void> {\n  await fail(1);\n}`,
    "lib.ts":
      `type T = number;\n\nexport async function fail(n: T): Promise<void> {\n  await Promise.resolve();\n  throw new RangeError("no " + n);\n}`,
  });
  const loaded = await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  const error = await assertRejects(() => (loaded.module.mount as Mount)(), RangeError);
  assert(error.stack?.includes(`${server.url}lib.ts:5:9`), error.stack ?? "");
  assert(error.stack?.includes(`${server.url}mod.ts:5:`), error.stack ?? "");
  assertEquals(displayErrorLocation(error, loaded.files), `${server.url}lib.ts:5:9`);
  assertEquals(displayErrorLocation(new Error("ours"), loaded.files), undefined);
  assertEquals(displayErrorLocation("text", loaded.files), undefined);
  const ours = new Error("ours", { cause: new Error("ours, too", { cause: error }) });
  assertEquals(displayErrorLocation(ours, loaded.files), `${server.url}lib.ts:5:9`);
});

Deno.test("load() makes every import that is left throw import_refused, and reports it", async () => {
  await using server = serveFiles({
    "mod.ts":
      `const name: string = "node:fs";\nconst all = await Promise.allSettled([\n  import(name),\n    import("node:os"),\n  import("npm:left-pad"),\n  import(\`./\${name}.ts\`),\n]);\n` +
      `export const mount = () => all.map((one) => one.reason?.code ?? one.value);\nexport const text = 'import("x")';`,
  });
  const { module, imports_refused } = await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals(await (module.mount as Mount)(), Array(4).fill("import_refused"));
  assertEquals(module.text, 'import("x")');
  const url = `${server.url}mod.ts`;
  assertEquals(imports_refused, [
    { specifier: null, url, line: 3, column: 3 },
    { specifier: "node:os", url, line: 4, column: 5 },
    { specifier: "npm:left-pad", url, line: 5, column: 3 },
    { specifier: null, url, line: 6, column: 3 },
  ]);
});

const WRONG: Readonly<
  Record<string, { source: string; line: number; column: number; message: RegExp; hint: RegExp }>
> = {
  "a syntax error": {
    source: "export const a = 1;\nexport const = 2;",
    line: 2,
    column: 14,
    message: /Expected identifier/,
    hint: /^$/,
  },
  "an unknown bare specifier": {
    source: 'export {};\nimport lodash from "lodash";\nlodash();',
    line: 2,
    column: 20,
    message: /Cannot import "lodash": it is a bare specifier/,
    hint: /use preamp, .*https:\/\/esm\.sh\/lodash/,
  },
  "a node: import": {
    source: '/* é€ */ import fs from "node:fs";\nexport const mount = fs;',
    line: 1,
    column: 25,
    message: /"node:fs": Node's modules are not available/,
    hint: /use fetch/,
  },
  "an npm: import": {
    source: 'export * from "npm:zod@3";',
    line: 1,
    column: 15,
    message: /npm: packages/,
    hint: /preamp module bundle/,
  },
  "a jsr: import": {
    source: 'export * from "jsr:@a/b";',
    line: 1,
    column: 15,
    message: /jsr: packages/,
    hint: /set modules\.esm_host/,
  },
  "an attribute that is not taken": {
    source: 'import a from "./a.css" with { type: "css" };\nexport const mount = a;',
    line: 1,
    column: 15,
    message: /Cannot import "\.\/a\.css" as "css"/,
    hint: /"json"/,
  },
  "a name that is not exported": {
    source: 'import { b } from "./ok.ts";\nexport const mount = () => b;',
    line: 1,
    column: 10,
    message: /No matching export/,
    hint: /^$/,
  },
};

for (const [what, { source, line, column, message, hint }] of Object.entries(WRONG)) {
  Deno.test(`load() reports ${what} with file, line, column and what to do`, async () => {
    const { error, url } = await errorOf({
      "mod.ts": `export { x as mount } from "./lib/x.ts";`,
      "lib/x.ts": `export const x = 1;\n`,
      "ok.ts": "export const a = 1;",
      "a.css": "",
      "mod2.ts": source,
    }, "mod2.ts");
    const [detail] = error.details;
    assertEquals(error.code, "module_invalid");
    assertEquals([detail?.file, detail?.line, detail?.column], [`${url}mod2.ts`, line, column]);
    assertMatch(detail?.message ?? "", message);
    assertMatch(detail?.hint ?? "", hint);
    assert(
      error.message.startsWith(
        `Cannot load module "tool-test" (${url}mod2.ts): ${url}mod2.ts:${line}:${column}: `,
      ),
      error.message,
    );
  });
}

Deno.test("load() reports a missing file at its import", async () => {
  const { error, url } = await errorOf({
    "mod.ts": `import "./lib/a.ts";\nexport const mount = 1;`,
    "lib/a.ts": `\n  import { gone } from "../gone.ts";\nexport const b = gone;`,
  });
  assertEquals(error.code, "module_fetch_failed");
  assertEquals([error.details[0]?.path, error.details[0]?.line, error.details[0]?.column], [
    `${url}lib/a.ts`,
    2,
    24,
  ]);
  assertMatch(error.message, /gone\.ts: its server answered 404/);
});

Deno.test("load() reports the exports of a module without mount", async () => {
  const { error, url } = await errorOf({ "mod.ts": `export const tool = 1;\nexport const run = tool;` });
  assertEquals(error.code, "module_invalid");
  assertMatch(
    error.message,
    /it must export mount\(coordinator, config\), or a default .*: it exports run, tool/,
  );
  assertEquals([error.details[0]?.path, error.details[0]?.line], [`${url}mod.ts`, 1]);
  assertMatch(error.details[0]?.hint ?? "", /export default defineTool\(.*export async function mount/);
});

Deno.test("load() hints at the extension when types stand in a .js file", async () => {
  const { error } = await errorOf({ "mod.js": `export const mount = (a: number): number => a;` }, "mod.js");
  assertMatch(error.details[0]?.hint ?? "", /TypeScript must end in \.ts/);
});

Deno.test("load() reports where a module's top level threw", async () => {
  const { error, url } = await errorOf({
    "mod.ts": `type A = 1;\nexport const mount = 1;\nthrow new Error("at once");`,
  });
  assertEquals(error.code, "module_load_failed");
  assert(error.message.includes(`${url}mod.ts:3:7: Error: at once`), error.message);
  assertEquals(error.facts.at, `${url}mod.ts:3:7`);
});

Deno.test("load() gives up on a top level that does not end", async () => {
  const key = `loader_test_${crypto.randomUUID()}`;
  const { promise, resolve } = Promise.withResolvers<void>();
  Object.assign(globalThis, { [key]: promise });
  await using server = serveFiles({ "mod.ts": `await globalThis["${key}"];\nexport const mount = 1;` });
  const policy = policyOf();
  policy.isolation.load_timeout_s = 0.05;
  const error = await refusal(() => loader.load(specOf(`${server.url}mod.ts`), contextOf({ policy })));
  resolve(); // Deno ends a process whose modules wait for nothing
  assertEquals(error.code, "module_load_failed");
  assertMatch(error.message, /not done within 0\.05 s/);
});

Deno.test("load() loads data: modules that import by URL, and files that import files", async () => {
  await using server = serveFiles({ "lib.ts": "export const one: number = 1;" });
  const inline = `import { one } from "${server.url}lib.ts"; export const mount = (): number => one + 1;`;
  const policy = policyOf({ private_hosts: [`127.0.0.1:${server.port}`] });
  const spec = specOf(`data:application/typescript,${encodeURIComponent(inline)}`);
  const loaded = await loader.load(spec, contextOf({ policy }));
  assertEquals((loaded.module.mount as () => number)(), 2);
  const folder = await Deno.makeTempDir();
  await Deno.mkdir(`${folder}/lib`);
  await Deno.writeTextFile(`${folder}/lib/a.ts`, `export const a: string = import.meta.dirname!;`);
  await Deno.writeTextFile(
    `${folder}/mod.ts`,
    `import { a } from "./lib/a.ts";\nexport const mount = () => a;`,
  );
  const base_url = `file://${folder}/plan.yaml`;
  const local = await loader.load(specOf("./mod.ts", { base_url }), contextOf({ base_url }));
  assertEquals((local.module.mount as () => string)(), `${folder}/lib`);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("load() keeps cycles, CommonJS, CRLF and a byte order mark apart", async () => {
  const mounted = await mountOf({
    "mod.ts":
      `\uFEFFimport { even } from "./even.ts";\r\nimport common from "./common.cjs";\r\nexport const mount = () => [even(4), common.name];\r\n`,
    "even.ts":
      `import { odd } from "./odd.ts";\nexport const even = (n: number): boolean => n === 0 || odd(n - 1);`,
    "odd.ts":
      `import { even } from "./even.ts";\nexport const odd = (n: number): boolean => n !== 0 && even(n - 1);`,
    "common.cjs": `module.exports = { name: "common" };`,
  });
  assertEquals(mounted, [true, "common"]);
});

Deno.test("load() reads a file by its name, not by what its server says", async () => {
  await using server = serveFiles({
    "mod.ts": () =>
      new Response("export const mount = (a: number): number => a;", {
        headers: { "content-type": "text/plain" },
      }),
    "mod.js": () =>
      new Response("export const mount = (a: number) => a;", {
        headers: { "content-type": "application/typescript" },
      }),
  });
  await loader.load(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals(
    (await refusal(() => loader.load(specOf(`${server.url}mod.js`), contextOf()))).code,
    "module_invalid",
  );
});

Deno.test("bundle() fetches and hashes, and runs nothing", async () => {
  const key = `loader_test_${crypto.randomUUID()}`;
  const source = `import "./a.ts"; globalThis["${key}"] = 1; export const mount = 1;`;
  await using server = serveFiles({ "mod.ts": source, "a.ts": "export {}" });
  const graph = await loader.bundle(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals(graph.files.map(({ url, bytes }) => [url, bytes]), [
    [`${server.url}a.ts`, 9],
    [`${server.url}mod.ts`, source.length],
  ]);
  assertEquals((globalThis as JsonObject)[key], undefined);
});

Deno.test("load() takes a star in a URL for a letter, not for a pattern", async () => {
  await using server = serveFiles({ "*.ts": "export const mount = () => 1;", "a.ts": "export {}" });
  assertEquals((await loader.bundle(specOf(`${server.url}*.ts`), contextOf())).files.length, 1);
  const inline = "data:text/javascript,export const mount = () => 2 /* two */;";
  assertEquals((await loader.load(specOf(inline), contextOf())).exports, ["mount"]);
});

Deno.test("bundle() gives a text without imports and without the SDK", async () => {
  await using server = serveFiles({
    "mod.ts": `import { defineTool } from "preamp";\nexport const mount = () => defineTool;`,
  });
  const { code, uses, exports } = await loader.bundle(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals([uses, exports], [["preamp"], ["mount"]]);
  assert(code.length < 4000, String(code.length));
});

Deno.test("load() holds the limits on files and on bytes in all", async () => {
  const files: Record<string, string> = { "mod.ts": "" };
  for (let index = 0; index < 20; index++) {
    files["mod.ts"] += `import "./${index}.ts";\n`;
    files[`${index}.ts`] = `export const a${index} = "${"x".repeat(100)}";`;
  }
  await using server = serveFiles(files);
  for (const limits of [{ max_graph_files: 20 }, { max_graph_bytes: 1500 }]) {
    const error = await refusal(() =>
      loader.load(specOf(`${server.url}mod.ts`), contextOf({ policy: policyOf({}, limits) }))
    );
    assertEquals([error.code, Object.keys(limits)], ["module_too_large", Object.keys(limits)]);
    assertMatch(error.message, limits.max_graph_files ? /20 files/ : /1500 bytes in total/);
  }
});

Deno.test("load() refuses a file import of a remote module, and one that leads out of the allow-list", async () => {
  await using server = serveFiles({
    "a/mod.ts": `import "file:///etc/passwd";\nexport const mount = 1;`,
    "a/out.ts": `import "../b/x.ts";\nexport const mount = 1;`,
    "b/x.ts": "export {}",
  });
  const policy = policyOf({ allow: [`${server.url}a/`], private_hosts: [`127.0.0.1:${server.port}`] });
  for (const path of ["mod.ts", "out.ts"]) {
    const error = await refusal(() =>
      loader.load(specOf(`${server.url}a/${path}`), contextOf({ origin: "caller", policy }))
    );
    assertEquals([path, error.code, error.details[0]?.line], [path, "module_source_denied", 1]);
  }
  assertEquals(server.requests, ["/a/mod.ts", "/a/out.ts"]);
});

Deno.test("bundle() reads the declaration of TypeScript whose functions use its names for something else", async () => {
  const text = `const net = ["a.test"] as const;
    export const module = { id: "tool-x", permissions: { net } } as const satisfies Record<string, unknown>;
    function parameter(module: unknown) { module = 2; return module }
    function local() { let net; net = 3; { let module; module = 4; net = module } return net }
    for (let net of [1]) net++;
    try { local() } catch (net) { net = 6 }
    class Holder { static { let module; module = 1; void module } }
    const pattern = ({ net }: { net: number }) => { net = 4; return net };
    /* module = {} */ const text = "permissions = { run: true }";
    export function mount(module: unknown) { module = 1; return [parameter, local, Holder, pattern, text, module] }`;
  await using server = serveFiles({ "mod.ts": text });
  await using loader = loaderOf();
  const { declared } = await loader.bundle(specOf(`${server.url}mod.ts`), contextOf());
  assertEquals(declared, { fields: { id: "tool-x", permissions: { net: ["a.test"] } }, unread: [] });
});

Deno.test("load() links no module in this process that a redirect led outside of modules.inline", async () => {
  const code = "globalThis.linked = true; export const mount = () => {};";
  await using other = serveFiles({ "mod.js": code });
  await using trusted = serveFiles({
    "a/other.js": () => Response.redirect(`${other.url}mod.js`),
    "a/inside.js": () => Response.redirect(`${trusted.url}a/mod.js`),
    "a/mod.js": "export const mount = () => {};",
  });
  const policy = policyOf({
    allow: [`${trusted.url}a/`, other.url],
    inline: [`${trusted.url}a/`],
    private_hosts: ["127.0.0.1"],
  });
  const context = contextOf({ origin: "caller", policy });
  const error = await refusal(() => loader.load(specOf(`${trusted.url}a/other.js`), context));
  assertEquals([error.code, Reflect.get(globalThis, "linked")], ["module_source_denied", undefined]);
  assertMatch(error.message, /outside of modules\.inline/);
  assertEquals(
    typeof (await loader.load(specOf(`${trusted.url}a/inside.js`), context)).module.mount,
    "function",
  );
});
