import fc from "fast-check";
import { assert, assertEquals } from "../../assert.ts";
import { MODULE_CODES } from "../../support/hostile_inputs.ts";
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
  ["a regular expression as unknown", "var m={a:/}/,permissions:{}};export{m as module};", {
    permissions: {},
  }],
  ["an export in place", "export const module={id:'f'},other=1;", { id: "f" }],
  ["an export under a text", "const m={id:'g'};export{m as'module'};", { id: "g" }],
  ["one assignment after the declaration", "let m;m={id:'h'};export{m as module};", { id: "h" }],
  ["numbers of every spelling", "export const module={a:0x10,b:1_000,c:-.5,d:1e3};", {
    a: 16,
    b: 1000,
    c: -0.5,
    d: 1000,
  }],
  ["nothing that is no JSON", "export const module={a:1n,b:1e999,c:undefined,d:-'1',e:!2,f:[,],g:/a/};", {}],
  ["methods and functions as unknown", "export const module={a(){},b:()=>1,c:function(){},id:1};", { id: 1 }],
  ["a template without holes", "export const module={a:`x\n`,b:`${1}`,c:String.raw`x`};", { a: "x\n" }],
  [
    "a __proto__ as data, in whatever spelling",
    "export const module={__proto__:{a:1},id:1};",
    JSON.parse(
      '{"__proto__":{"a":1},"id":1}',
    ),
  ],
  [
    "text that looks like a declaration",
    'var s="permissions = {run:true}";/* permissions = {} */ // m = 1\nvar m={id:s};export{m as module};',
    {
      id: "permissions = {run:true}",
    },
  ],
  ["fields that others assign", "var m={id:1};x.m=2;m.id=3;export{m as module};", { id: 1 }],
  ["no semicolon", "var m={id:'e'}\nvar n=1\nexport{m as module}", { id: "e" }],
  [
    "a __proto__ key as data",
    'var m={"__proto__":{a:1}};export{m as module};',
    JSON.parse('{"__proto__":{"a":1}}'),
  ],
];

for (const [what, code, expected] of CASES) {
  Deno.test(`readDeclared() reads ${what}`, () => {
    assertEquals((readDeclared(code))?.fields, expected);
  });
}

Deno.test("readDeclared() names the fields that it cannot read, in whole or in part", () => {
  const code = "var m={id:'d',a:f(),b:{c:[1,g]},permissions:{net:[]},permissions:x,};export{m as module};";
  assertEquals(readDeclared(code), { fields: { id: "d" }, unread: ["a", "b", "permissions"] });
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
  ["is an object of another prototype by a spread", "var o={a:1};var m={...o};export{m as module};"],
  ["has the name of a parameter that is assigned", "var m={id:1};function f(m){m=2}export{m as module};"],
  ["is declared twice", "let m={id:1};let m={id:2};export{m as module};"],
  ["is assigned in a function", "var m={id:1};function f(){m={id:2}}export{m as module};"],
  ["is assigned in a condition", "let m;if(x)m={id:2};export{m as module};"],
  ["is assigned by an arrow function", "let m={id:1};const f=()=>m=2;export{m as module};"],
  ["is assigned in a block of a function", "let m={id:1};function f(a){{let a;m=a}}export{m as module};"],
  ["is counted", "let m={id:1};m++;export{m as module};"],
  ["is assigned by an operator", "let m;m??={id:1};export{m as module};"],
  ["is assigned by a pattern", "let m={id:1};({a:m=1}=x);export{m as module};"],
  ["is declared by a pattern", "var {m}={m:{id:1}};export{m as module};"],
  ["is declared by a pattern that is exported", "export const {module}={module:{id:1}};"],
  ["is assigned by a loop", "var m={id:1};for(m of x);export{m as module};"],
  ["is declared by a loop", "var m={id:1};for(var m in x);export{m as module};"],
  ["is declared again in a block", "var m={id:1};{var m={id:2}}export{m as module};"],
  ["is assigned behind a catch of another name", "var m={id:1};try{}catch(e){m=e}export{m as module};"],
  [
    "is the name of a function that assigns it by another name",
    "var m={id:1};(function f(){m=f})();export{m as module};",
  ],
  ["is assigned in a static block", "var m={id:1};class A{static{m=2}}export{m as module};"],
  ["is a class", "export class module{static id='a'}"],
  ["is from elsewhere", "export{module}from'./x.js';"],
  ["is never assigned", "export let module;"],
  ["is a list", "export const module=[{id:1}];"],
  ["is nothing", "export const module=null;"],
  ["has a setter", "export const module={id:1,set permissions(x){}};"],
  ["is no syntax", "export const module={id:1}; @x class A {}"],
  ["is a text", "var m='x';export{m as module};"],
];

for (const [what, code] of UNKNOWNS) {
  Deno.test(`readDeclared() answers null when module ${what}`, () => {
    assertEquals(readDeclared(code), null);
  });
}

Deno.test("readDeclared() leaves a bundle of more than a million characters alone", () => {
  const code = "var m={id:1,net};var net=['a'];export{m as module};";
  assertEquals((readDeclared(code.padEnd(1024 * 1024)))?.fields, { id: 1, net: ["a"] });
  assertEquals(readDeclared(code.padEnd(1024 * 1024 + 1)), null);
});

Deno.test("readDeclared() reads every JSON object as JSON.parse() does", () => {
  const objects = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }));
  fc.assert(fc.property(objects, fc.boolean(), (object, apart) => {
    const text = JSON.stringify(object);
    const code = apart ? `const a=${text},b=a;export{b as module}` : `export const module=${text};`;
    assertEquals(readDeclared(code), { fields: JSON.parse(text), unread: [] });
  }));
});

for (const [what, code] of Object.entries(MODULE_CODES)) {
  Deno.test(`readDeclared() returns little of ${what}`, () => {
    assert(JSON.stringify(readDeclared(`${code}export{m as module};`)).length < 100);
  });
}
