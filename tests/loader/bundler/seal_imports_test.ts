import { sealImports } from "../../../src/loader/bundler/imports.ts";
import { originalPlaces, type SourceMap } from "../../../src/loader/bundler/source_map.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

const DYNAMIC = [
  "import(x)",
  "import ( x )",
  "import(/* a */ 'b')",
  "import('b', { with: { type: 'json' } })",
  "import(import('a'))",
  "import.source(x)",
  "import.defer('y')",
  "(0, import(x))",
  "`${import('t')}`",
  "class A { static [await import('k')] = 1 }",
];
const HARMLESS = [
  "import.meta.url",
  "'import(x)'",
  "`import(x)`",
  "/import(x)/",
  "a.import(x)",
  "({ import() {} })",
  "// import(x)\n1",
];

for (const text of DYNAMIC) {
  Deno.test(`sealImports() overwrites ${text} without moving anything`, async () => {
    const code = `const x = 1; export const a = ${text};\n`;
    const sealed = await sealImports(code);
    assertEquals(sealed.refused.length, text.split("import").length - 1);
    for (const { offset } of sealed.refused) assertEquals(sealed.code.slice(offset, offset + 3), "$i0");
    const same = [...code].filter((letter, index) => sealed.code[index] === letter).length;
    assertEquals(same >= code.length - 6 * sealed.refused.length, true);
    assertEquals(sealed.exports, ["a"]);
  });
}

for (const text of HARMLESS) {
  Deno.test(`sealImports() leaves ${JSON.stringify(text)} alone`, async () => {
    const code = `export const a = ${text};\n`;
    assertEquals((await sealImports(code)).code, code);
  });
}

for (
  const text of [
    "import 'a';",
    "import b from 'a';",
    "export * from 'a';",
    "export { b } from 'a';",
    "import defer * as b from 'a';",
  ]
) {
  Deno.test(`sealImports() refuses a bundle with ${text}`, async () => {
    await assertRejects(() => sealImports(`${text}\nexport const c = 1;`), Error, "Cannot seal the bundle");
  });
}

Deno.test("sealImports() takes a name that the bundle does not use", async () => {
  const { code } = await sealImports("const $i0000 = 1; export const a = import($i0000);");
  assertEquals(code.includes("$i0001($i0000)"), true);
});

Deno.test("a sealed import rejects with import_refused, whatever it is asked for", async () => {
  const { code } = await sealImports(
    "export const all = () => Promise.allSettled([import('node:fs'), import(1), import.source('x'), import({ toString() { throw 1 } })]);",
  );
  const { all } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const settled = await all() as PromiseSettledResult<unknown>[];
  assertEquals(
    settled.map((one) => one.status === "rejected" && one.reason.code),
    Array(4).fill("import_refused"),
  );
});

Deno.test("originalPlaces() reads a source map backwards", () => {
  // line 0 from b.ts, line 2 from a.ts: columns 0 and 6
  const map: SourceMap = { version: 3, sources: ["a.ts", "b.ts"], names: [], mappings: "ACEI;;ADFJ,MAAM" };
  const at = (line: number, column: number) => originalPlaces(map, [{ line, column }])[0];
  assertEquals(at(0, 3), { source: "b.ts", line: 3, column: 5 });
  assertEquals(at(1, 0), undefined);
  assertEquals(at(2, 0), { source: "a.ts", line: 1, column: 1 });
  assertEquals(at(2, 9), { source: "a.ts", line: 1, column: 7 });
  assertEquals(originalPlaces({ ...map, mappings: "!!!" }, [{ line: 0, column: 0 }]), [undefined]);
});
