import fc from "fast-check";
import {
  canonicalJson,
  deepFreeze,
  estimateJsonBytes,
  isObject,
  jsonEqual,
  toFrozenObject,
  toFrozenOwn,
  toOwnObject,
  toPlain,
  toPlainObject,
} from "../../src/sdk/json.ts";
import { canonicalHash } from "../../src/sdk/digest.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";

Deno.test("toPlain() converts as documented", () => {
  class Point {
    x = 1;
    get y() {
      return 2;
    }
  }
  const cases: [unknown, unknown][] = [
    [{ a: undefined, f: () => 1, s: Symbol("s") }, {}],
    [[undefined, () => 1, Symbol("s")], [null, null, null]],
    [12345678901234567890n, "12345678901234567890"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(NaN), null],
    [new Map<unknown, unknown>([["a", 1], [2, new Set([1])]]), { a: 1, 2: [1] }],
    [new Uint8Array([0, 255, 16]), "AP8Q"],
    [new Uint16Array([1]).buffer, "AQA="],
    [new DataView(new ArrayBuffer(2), 1), "AA=="],
    [new RangeError("bad"), { name: "RangeError", message: "bad" }],
    [NaN, null],
    [-Infinity, null],
    [Object("boxed"), "boxed"],
    [Object(true), true],
    [new Point(), { x: 1 }],
    [new URL("https://a.example/b"), "https://a.example/b"],
    [Object.create(null, { a: { value: 1, enumerable: true } }), { a: 1 }],
  ];
  for (const [given, expected] of cases) assertEquals(toPlain(given), expected);
});

Deno.test("toPlain() cuts cycles, not repeated values", () => {
  const shared = { x: 1 };
  assertEquals(toPlain([shared, shared]), [{ x: 1 }, { x: 1 }]);
  const cycle: Record<string, unknown> = { name: "a" };
  cycle.self = cycle;
  cycle.list = [cycle];
  assertEquals(toPlain(cycle), { name: "a", self: "[Circular]", list: ["[Circular]"] });
  const set = new Set<unknown>();
  set.add({ set });
  assertEquals(typeof JSON.stringify(toPlain(set)), "string");
});

Deno.test("toPlain() stops at 64 levels", () => {
  let deep: unknown = "bottom";
  for (let level = 0; level < 100; level++) deep = [deep];
  const text = JSON.stringify(toPlain(deep));
  assertEquals(text, `${"[".repeat(64)}"[Deep]"${"]".repeat(64)}`);
});

Deno.test("toPlain() drops keys that could reach a prototype", () => {
  const evil = JSON.parse('{"__proto__":{"a":1},"constructor":{"b":1},"prototype":1,"ok":1}');
  assertEquals(toPlain(evil), { ok: 1 });
  assertEquals(toPlain(new Map([["__proto__", { a: 1 }], ["b", { c: 1 }]])), { b: { c: 1 } });
});

Deno.test("toPlain() never throws, whatever a value does when it is read", () => {
  const thrower = () => {
    throw new Error("no");
  };
  const readable = {
    ok: 1,
    get bad() {
      return thrower();
    },
  };
  assertEquals(toPlain(readable), { ok: 1, bad: "[Unreadable]" });
  assertEquals(toPlain([new Proxy({}, { ownKeys: thrower })]), ["[Unreadable]"]);
  assertEquals(toPlain([new Proxy({}, { getPrototypeOf: thrower })]), ["[Unreadable]"]);
  class Bad {
    toJSON() {
      return thrower();
    }
  }
  assertEquals(toPlain({ bad: new Bad() }), { bad: "[Unreadable]" });
  class Endless {
    toJSON() {
      return new Endless();
    }
  }
  assertEquals(toPlain(new Endless()), "[Deep]");
});

Deno.test("toPlain() of anything survives JSON unchanged", () => {
  fc.assert(
    fc.property(
      fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withTypedArray: true,
        withObjectString: true,
        withNullPrototype: true,
        withSparseArray: true,
        withBoxedValues: true,
      }),
      (value) => {
        const plain = toPlain(value);
        const text = JSON.stringify(plain);
        assertEquals(JSON.stringify(JSON.parse(text)), text);
        assert(jsonEqual(JSON.parse(text), plain));
      },
    ),
  );
});

Deno.test("toPlain() shares nothing with the copied value", () => {
  const given = { list: [{ x: 1 }] };
  const plain = toPlain(given) as typeof given;
  given.list[0]!.x = 2;
  assertEquals(plain.list[0]?.x, 1);
});

Deno.test("toFrozenObject() returns a plain frozen object itself, and a frozen copy of anything else", () => {
  const done = toFrozenObject({ role: "user", content: [{ type: "text", text: "x", n: 1, none: null }] });
  assert(toFrozenObject(done) === done);
  const inside = { text: "x" };
  for (
    const given of [
      { inside },
      Object.freeze({ inside }), // only its top
      Object.freeze({ at: Object.freeze(new Date(0)) }),
      Object.freeze({ n: NaN }),
      Object.freeze({ list: Object.freeze([undefined]) }),
      Object.freeze({ list: Object.freeze(new Array(2)) }),
      frozenCycle(),
      Object.freeze(Object.assign(Object.create({ inherited: 1 }), { own: 1 })),
      Object.freeze(JSON.parse('{"__proto__": 1}')),
      null,
      [1],
      "x",
    ]
  ) {
    const frozen = toFrozenObject(given);
    assert(frozen !== given);
    assertEquals(frozen, toPlainObject(given));
    assert(Object.isFrozen(frozen));
  }
  assert(!Object.isFrozen(inside));
});

Deno.test("toFrozenObject() stops at 64 levels, also when it returned the inner ones before", () => {
  let chain = toFrozenObject({ end: true });
  for (let count = 1; count < 64; count++) chain = toFrozenObject({ next: chain });
  assertEquals(toFrozenObject({ next: chain.next }).next, chain.next);
  for (let count = 0; count < 1000; count++) chain = toFrozenObject({ next: chain });
  assertEquals(JSON.stringify(chain), JSON.stringify(toPlain(chain)));
});

Deno.test("no copy holds what a value returns when it is read again, or in place of the text of a date", () => {
  const kept = { changed: 1 };
  const twice = () => {
    let reads = 0;
    return {
      get field() {
        return reads++ % 2 === 0 ? "text" : kept;
      },
    };
  };
  class Odd extends Date {
    override toISOString(): string {
      return kept as unknown as string;
    }
  }
  for (const copyOf of [toOwnObject, toPlainObject, toFrozenObject]) {
    assert(copyOf(twice()).field !== kept as unknown, copyOf.name);
    assertEquals(copyOf({ date: new Odd() }), { date: null });
  }
});

Deno.test("toFrozenObject() shares the parts that it returned before, and copies all others", () => {
  const call = toFrozenObject({ query: "x", at: { line: 1 } });
  const twin = deepFreeze({ query: "x", at: { line: 1 } });
  const event = toFrozenObject({ call, calls: [call], twin });
  assert(event.call === call && (event.calls as unknown[])[0] === call);
  assert(event.twin !== twin);
  assertEquals(event, { call, calls: [call], twin });
  const copy = toPlainObject(event) as { call: { query: string } };
  copy.call.query = "y";
  assertEquals(call.query, "x");
});

Deno.test("toFrozenOwn() freezes a new object itself, and copies one with other values than data", () => {
  const part = toFrozenObject({ x: 1 });
  const list = [{ y: 2 }];
  const own = { role: "tool", part, list, none: null };
  const frozen = toFrozenOwn(own);
  assert(frozen === own as unknown && Object.isFrozen(own) && frozen.part === part);
  assert(frozen.list !== list as unknown && !Object.isFrozen(list) && Object.isFrozen(frozen.list));
  assertEquals(estimateJsonBytes(frozen), estimateJsonBytes(JSON.parse(JSON.stringify(own))));
  assert(toFrozenObject(frozen) === frozen && toFrozenOwn(frozen) === frozen);
  for (const value of [undefined, NaN, () => 1, 1n]) {
    const odd = { value, at: new Date(0) };
    assertEquals(toFrozenOwn(odd), toPlainObject({ value, at: new Date(0) }));
    assert(!Object.isFrozen(odd));
  }
});

Deno.test("toFrozenObject() knows the estimated size of what it returns", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (first, second) => {
      const shared = toFrozenObject({ first });
      const frozen = toFrozenObject({ shared, again: [shared], second });
      assertEquals(estimateJsonBytes(frozen), estimateJsonBytes(JSON.parse(JSON.stringify(frozen))));
    }),
  );
});

function frozenCycle(): object {
  const around: { inside?: unknown } = {};
  around.inside = Object.freeze([around]);
  return Object.freeze(around);
}

Deno.test("toPlainObject() loses only the field that cannot be read", () => {
  const given = {
    ok: 1,
    get bad() {
      throw new Error("no");
    },
  };
  assertEquals(toPlainObject(given), { ok: 1, bad: "[Unreadable]" });
});

Deno.test("toPlainObject() returns {} for a value that is not an object", () => {
  for (const value of [null, undefined, 1, "x", [1]]) assertEquals(toPlainObject(value), {});
});

Deno.test("canonicalJson() returns RFC 8785's sample (section 3.2.2)", () => {
  const input = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  );
  assertEquals(
    canonicalJson(input),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

Deno.test("canonicalJson() sorts keys by UTF-16 code units (RFC 8785, section 3.2.3)", () => {
  const input = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  const sorted = [...canonicalJson(input).matchAll(/:"([^"]+)"/g)].map((match) => match[1]);
  assertEquals(sorted, [
    "Carriage Return",
    "One",
    "Control",
    "Latin Small Letter O With Diaeresis",
    "Euro Sign",
    "Emoji: Grinning Face",
    "Hebrew Letter Dalet With Dagesh",
  ]);
});

Deno.test("canonicalJson() writes numbers as RFC 8785, appendix B", () => {
  const vectors: [string, string][] = [
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555554", "333333333.33333325"],
    ["41b3de4355555555", "333333333.3333333"],
    ["41b3de4355555556", "333333333.3333334"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ];
  for (const [hex, expected] of vectors) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt(`0x${hex}`));
    assertEquals(canonicalJson(view.getFloat64(0)), expected);
  }
});

Deno.test("canonicalJson() refuses values without a JSON form", () => {
  for (const value of [NaN, Infinity, 1n, () => 1, Symbol("s"), undefined, [undefined]]) {
    assertThrows(() => canonicalJson(value), TypeError, "Cannot canonicalise");
  }
  assertEquals(canonicalJson({ a: undefined, b: 1 }), '{"b":1}');
});

Deno.test("canonicalJson() is the same for equal data and different for other data", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
    assertEquals(canonicalJson(a) === canonicalJson(b), jsonEqual(normal(a), normal(b)));
    assertEquals(canonicalJson(JSON.parse(canonicalJson(a))), canonicalJson(a));
  }));
});

/** JSON has no negative zero. */
const normal = (value: unknown) => JSON.parse(JSON.stringify(value));

Deno.test("canonicalHash() is the SHA-256 of the canonical text, whatever the order of keys", () => {
  assertEquals(canonicalHash({ b: 1, a: [] }), canonicalHash({ a: [], b: 1 }));
  // printf '{}' | openssl dgst -sha256 -binary | base64
  assertEquals(canonicalHash({}), "sha256-RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=");
});

Deno.test("jsonEqual() distinguishes lists from objects and absent from null", () => {
  assert(jsonEqual({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }));
  for (
    const [a, b] of [[[], {}], [{}, []], [{ a: null }, {}], [[1], [1, 2]], [null, {}], ["1", 1], [{ a: 1 }, {
      b: 1,
    }]]
  ) {
    assert(!jsonEqual(a, b), JSON.stringify([a, b]));
  }
});

Deno.test("deepFreeze() freezes all the way down", () => {
  const value = deepFreeze({ a: [{ b: 1 }] });
  assertThrows(() => value.a[0]!.b = 2, TypeError);
  assertThrows(() => value.a.push({ b: 3 }), TypeError);
});

Deno.test("isObject() is true for objects only", () => {
  assertEquals([{}, new Map(), [], null, "x", () => 1].map(isObject), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

Deno.test("toFrozenObject() copies a list whose length is not a number", () => {
  const live = { text: "before", valueOf: () => 0 };
  const list = new Proxy([], { get: (items, key) => key === "length" ? live : Reflect.get(items, key) });
  const data = toFrozenObject({ list });
  live.text = "after";
  assertEquals(JSON.stringify(data), '{"list":[]}');
  assert(Object.isFrozen(data.list));
});
