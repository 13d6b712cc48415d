import fc from "fast-check";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { deepFreeze, isObject, type JsonObject } from "../../src/sdk/json.ts";
import { filterAgents, mergeAll, mergePlans } from "../../src/plan/merge.ts";

Deno.test("mergePlans() merges modules by key, parent first, and does not change the parent", () => {
  const parent = deepFreeze({ tools: [{ module: "a", config: { x: 1 } }, "b"] });
  const merged = mergePlans(parent, { tools: [{ module: "a", config: { y: 2 } }, "c"] });
  assertEquals(merged, { tools: [{ module: "a", config: { x: 1, y: 2 } }, "b", "c"] });
  assertEquals(parent, { tools: [{ module: "a", config: { x: 1 } }, "b"] });
});

Deno.test("mergePlans() keeps what the parent denies", () => {
  const tool = (config: unknown) => ({ tools: [{ module: "t", config }] });
  const parent = tool({
    denied_write_paths: ["P"],
    allowed_write_paths: ["A"],
    nested: { denied_hosts: ["H"] },
  });
  assertEquals(mergePlans(parent, tool({ denied_write_paths: ["Q"], allowed_write_paths: ["B", "A"] })), {
    tools: [{
      module: "t",
      config: {
        denied_write_paths: ["P", "Q"],
        allowed_write_paths: ["A", "B"],
        nested: { denied_hosts: ["H"] },
      },
    }],
  });
  for (
    const config of [null, "x", [], { denied_write_paths: null, nested: 5 }, {
      denied_write_paths: [],
      nested: [],
    }]
  ) {
    const text = JSON.stringify(mergePlans(parent, tool(config)));
    assert(text.includes('"denied_write_paths":["P"]') && text.includes('"denied_hosts":["H"]'), text);
  }
});

Deno.test('mergePlans() filters agents with "none", names, "all" or undefined', () => {
  const parent = { agents: { x: { description: "x" }, y: { description: "y" } } };
  assertEquals(mergePlans(parent, { agents: "none" }).agents, {});
  assertEquals(mergePlans(parent, { agents: ["x"] }).agents, { x: { description: "x" } });
  assertEquals(mergePlans(parent, { agents: "all" }).agents, parent.agents);
  assertEquals(mergePlans(parent, {}).agents, parent.agents);
  assertEquals(filterAgents(parent.agents, ["unknown"]), {});
  const composed = mergePlans(parent, { agents: { x: { tools: ["t"] }, z: {} } }).agents;
  assertEquals(composed, { x: { description: "x", tools: ["t"] }, y: { description: "y" }, z: {} });
});

Deno.test("mergePlans() prefers the child's scalars and lists and merges objects field by field", () => {
  const parent = {
    limits: { max_tool_calls: 5, max_iterations: 3 },
    session: { metadata: { a: [1, 2], b: 1 } },
  };
  const child = { limits: { max_tool_calls: 2 }, session: { metadata: { a: [3], c: null } } };
  assertEquals(mergePlans(parent, child), {
    limits: { max_tool_calls: 2, max_iterations: 3 },
    session: { metadata: { a: [3], b: 1, c: null } },
  });
});

Deno.test("mergePlans() appends with key+, at any depth, and becomes key when the parent has no such list", () => {
  const parent = { hooks: [{ module: "h", config: { rules: [1], name: "n" } }] };
  const child = {
    hooks: [{ module: "h", config: { "rules+": [2, 3], "new+": [4], "name+": "m" } }],
    "tools+": ["t"],
  };
  assertEquals(mergePlans(parent, child), {
    hooks: [{ module: "h", config: { rules: [1, 2, 3], name: "m", new: [4] } }],
    tools: ["t"],
  });
  assertEquals(mergePlans({}, { tools: [{ module: "t", config: { "a+": [1] } }] }), {
    tools: [{ module: "t", config: { a: [1] } }],
  });
  assertEquals(mergePlans({ tools: ["a"] }, { "tools+": ["a", "b"] }), { tools: ["a", "b"] });
});

Deno.test("mergePlans() matches instances by their id and replaces an instance of another module", () => {
  const parent = {
    providers: [
      {
        module: "p",
        instance_id: "main",
        source: "https://a.example/p.ts",
        integrity: "sha256-x",
        config: { k: 1 },
      },
      "p",
    ],
  };
  const merged = mergePlans(parent, {
    providers: [{ module: "q", instance_id: "main", config: { z: 1 } }, { module: "p", config: { y: 1 } }],
  });
  assertEquals(merged, {
    providers: [{ module: "q", instance_id: "main", config: { z: 1 } }, { module: "p", config: { y: 1 } }],
  });
});

Deno.test("mergePlans() never gives one module the source of another", () => {
  const parent = {
    session: {
      orchestrator: { module: "mine", source: "https://a.example/loop.ts", config: { a: 1 } },
      context: "context-mine",
      context_source: "https://a.example/context.ts",
    },
  };
  assertEquals(mergePlans(parent, { session: { orchestrator: "loop-basic", context: "context-simple" } }), {
    session: { orchestrator: { module: "loop-basic" }, context: "context-simple" },
  });
  const tuned = mergePlans(parent, { session: { orchestrator: { config: { b: 2 } } } });
  assertEquals((tuned.session as JsonObject).orchestrator, {
    module: "mine",
    source: "https://a.example/loop.ts",
    config: { a: 1, b: 2 },
  });
});

Deno.test("mergePlans() replaces system whole", () => {
  assertEquals(mergePlans({ system: { instruction: "a" } }, { system: { file: "b" } }), {
    system: { file: "b" },
  });
});

Deno.test("mergePlans() keeps entries that are not modules, for the checker to report", () => {
  assertEquals(mergePlans({ tools: ["a"] }, { tools: [7, null] }), { tools: ["a", 7, null] });
  assertEquals(mergePlans({ tools: ["a"] }, { tools: null }), { tools: ["a"] });
});

Deno.test("mergePlans() drops keys that reach a prototype", () => {
  const child = JSON.parse(
    '{"session": {"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}, "__proto__+": [1]}',
  );
  const merged = mergePlans({ session: { a: 1 } }, child);
  assertEquals(JSON.stringify(merged), '{"session":{"a":1}}');
  assertEquals(({} as Record<string, unknown>).polluted, undefined);
});

Deno.test("mergeAll() merges plans from left to right", () => {
  assertEquals(mergeAll([{ a: 1, b: 1 }, { b: 2, c: 2 }, { c: 3 }]), { a: 1, b: 2, c: 3 });
  assertEquals(mergeAll([]), {});
});

const scalar = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.constantFrom("a", "b"));
const fields = fc.letrec<{ value: unknown; object: JsonObject }>((tie) => ({
  value: fc.oneof({ depthSize: "small" }, scalar, fc.array(scalar, { maxLength: 3 }), tie("object")),
  object: fc.dictionary(
    fc.constantFrom("k", "l", "denied_paths", "denied_write_paths", "allowed_read_paths"),
    tie("value"),
  ),
})).object as fc.Arbitrary<JsonObject>;
const spec = fc.oneof(
  fc.constantFrom("m1", "m2"),
  fc.record({ module: fc.constantFrom("m1", "m2", "m3"), config: fields }, { requiredKeys: ["module"] }),
);
const plan = fc.record({
  tools: fc.array(spec, { maxLength: 4 }),
  session: fc.record({ orchestrator: spec, metadata: fields }, { requiredKeys: [] }),
  limits: fields,
}, { requiredKeys: [] })
  .map((value): JsonObject => JSON.parse(JSON.stringify(value))); // ordinary objects, as a parser makes them

Deno.test("mergePlans() with an empty plan on either side is the plan itself", () => {
  fc.assert(fc.property(plan, (value) => {
    assertEquals(mergePlans(value, {}), value);
    assertEquals(mergePlans({}, value), value);
  }));
});

Deno.test("mergePlans() with itself is the plan itself", () => {
  fc.assert(fc.property(plan, (value) => {
    assertEquals(JSON.stringify(mergePlans(value, value)), JSON.stringify(value));
  }));
});

Deno.test("mergePlans() never mutates and never shares with either side", () => {
  fc.assert(fc.property(plan, plan, (parent, child) => {
    const before = JSON.stringify([parent, child]);
    const merged = mergePlans(parent, child);
    assertEquals(JSON.stringify([parent, child]), before);
    const given = new Set([...objectsIn(parent), ...objectsIn(child)]);
    assert(objectsIn(merged).every((object) => !given.has(object)));
  }));
});

function objectsIn(value: unknown): object[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(objectsIn)];
}

/** Returns every denied entry with its field. */
function denials(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(denials);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    key.startsWith("denied_") && Array.isArray(item)
      ? item.map((entry) => `${key}=${JSON.stringify(entry)}`)
      : denials(item)
  );
}

Deno.test("mergePlans() never loses what the parent denies, for any child", () => {
  fc.assert(
    fc.property(plan, plan, (parent, child) => {
      const kept = denials(mergePlans(parent, child));
      for (const denial of denials(parent)) assert(kept.includes(denial), `${denial} was lost`);
    }),
    propertyOptions(40, 1000, 10_000),
  );
});

Deno.test("mergePlans() keeps every module of the parent in its order", () => {
  fc.assert(fc.property(plan, plan, (parent, child) => {
    const ids = (value: JsonObject) =>
      (Array.isArray(value.tools) ? value.tools : []).map((item) => isObject(item) ? item.module : item);
    const before = ids(parent);
    assertEquals(ids(mergePlans(parent, child)).slice(0, before.length), before);
  }));
});
