import { assertEquals } from "../../assert.ts";
import { readDeclared } from "../../../src/loader/bundler/static_manifest.ts";

const CASES: readonly (readonly [string, string, unknown])[] = [
  [
    "a bundle's literal",
    'var module={id:"a",permissions:{net:["h:1"],run:!1}};function mount(){}export{module,mount};',
    {
      id: "a",
      permissions: { net: ["h:1"], run: false },
    },
  ],
  ["another local name", 'const e=1,t={id:"b",n:-1.5e3,list:[null,true,]};export{t as module};', {
    id: "b",
    n: -1500,
    list: [null, true],
  }],
  ["constants named by it", 'var net=["x"];var p={net};var m={id:`c`,permissions:p};export{m as module};', {
    id: "c",
    permissions: { net: ["x"] },
  }],
  ["escapes and comments", "var m={/* , */'a\\u0041\\x42':'\\n\\u{1f600}',// }\n1:2};export{m as module};", {
    aAB: "\n\u{1f600}",
    1: 2,
  }],
  [
    "unknown fields, which are left out",
    "var m={id:'d',config_schema:z.x({a:[1,')']}),permissions:make()};export{m as module};",
    {
      id: "d",
    },
  ],
  [
    "no literal before a field of that name",
    "var m={permissions:{net:[]},permissions:f()};export{m as module};",
    {},
  ],
  ["a constant that names itself", "var m={id:m,version:'1'};var o=m;export{o as module};", { version: "1" }],
  ["no semicolon", "var m={id:'e'}\nvar n=1\nexport{m as module}", { id: "e" }],
  [
    "a __proto__ key as data",
    'var m={"__proto__":{a:1}};export{m as module};',
    JSON.parse('{"__proto__":{"a":1}}'),
  ],
];

for (const [what, code, expected] of CASES) {
  Deno.test(`readDeclared() reads ${what}`, async () => {
    assertEquals((await readDeclared(code))?.fields, expected);
  });
}

Deno.test("readDeclared() names the fields that it cannot read, in whole or in part", async () => {
  const code = "var m={id:'d',a:f(),b:{c:[1,g]},permissions:{net:[]},permissions:x,};export{m as module};";
  assertEquals(await readDeclared(code), { fields: { id: "d" }, unread: ["a", "b", "permissions"] });
});

const UNKNOWNS: readonly (readonly [string, string])[] = [
  ["is made by a call", "var m=Object.freeze({id:'a'});export{m as module};"],
  ["continues after the braces", "var m={id:'a'}.x;export{m as module};"],
  ["is chosen by what runs", "var m=x?{id:'a'}:{};export{m as module};"],
  ["spreads something", "var m={...x,permissions:{}};export{m as module};"],
  ["computes a key", "var m={['permissions']:{}};export{m as module};"],
  ["has an accessor", "var m={get permissions(){return{}}};export{m as module};"],
  ["is assigned twice", "var m={id:'a'};m={id:'b'};export{m as module};"],
  ["only stands in text", "var s='var m={id:1}';let m;export{m as module};"],
  ["only stands in a template", "var s=`\nvar m={id:1}`;let m;export{m as module};"],
  ["only stands in a regular expression", "var s=/m={id:1}/;let m;export{m as module};"],
  ["only stands in a function", "function f(){var m={id:1}}var m2;export{m2 as module};"],
  ["is not there", "export{mount};function mount(){}"],
  ["is cut", "var m={id:'a'"],
  ["may hold a regular expression", "var m={a:/}/,permissions:{}};export{m as module};"],
  ["is a text", "var m='x';export{m as module};"],
];

for (const [what, code] of UNKNOWNS) {
  Deno.test(`readDeclared() answers null when module ${what}`, async () => {
    assertEquals(await readDeclared(code), null);
  });
}

Deno.test("readDeclared() leaves a bundle of more than a million characters alone", async () => {
  const code = "var m={id:1,net};var net=['a'];export{m as module};";
  assertEquals((await readDeclared(code.padEnd(1024 * 1024)))?.fields, { id: 1, net: ["a"] });
  assertEquals(await readDeclared(code.padEnd(1024 * 1024 + 1)), null);
});

Deno.test("readDeclared() is not slow on a hostile bundle", async () => {
  const code = `var m={id:1};${"m=".repeat(200_000)}1;${"{m={".repeat(50_000)}`;
  const before = performance.now();
  await readDeclared(`${code}export{m as module};`);
  const took = performance.now() - before;
  assertEquals(took < 2000, true, `${took} ms`);
});
