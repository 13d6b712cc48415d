import {
  addSnakeCase,
  inputSchemaOf,
  methodOf,
  SNAKE_CASE,
  withSnakeCase,
} from "../../src/sdk/snake_case_aliases.ts";
import { CancellationToken } from "../../src/sdk/cancellation.ts";
import { EventRecorder } from "../../src/testing/hooks.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("SNAKE_CASE pairs every name with its own words", () => {
  for (const [camel, snake] of Object.entries(SNAKE_CASE)) {
    assertEquals(snake, camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  }
});

Deno.test("every class that modules are handed answers to both spellings of each of its methods", () => {
  for (const kind of [CancellationToken, EventRecorder, MockContextManager, MockProvider, TestCoordinator]) {
    const prototype = kind.prototype as unknown as Record<string, unknown>;
    const methods = Object.getOwnPropertyNames(prototype).filter((name) => {
      const { value } = Object.getOwnPropertyDescriptor(prototype, name)!;
      return typeof value === "function" && /[a-z][A-Z]/.test(name);
    });
    assert(methods.length > 0);
    for (const name of methods) {
      const snake = SNAKE_CASE[name];
      assert(snake, `${kind.name}.${name} is not in the table`);
      assert(prototype[snake] === prototype[name], `${kind.name}.${snake} is missing`);
      assert(!Object.keys(prototype).includes(snake), `${snake} would be copied with the object`);
    }
  }
});

Deno.test("methodOf() finds either spelling, bound to its object", () => {
  const camel = {
    value: 1,
    getInfo() {
      return this.value;
    },
  };
  const snake = {
    value: 2,
    get_info() {
      return this.value;
    },
  };
  assertEquals(methodOf(camel, "getInfo")?.(), 1);
  assertEquals(methodOf(snake, "getInfo")?.(), 2);
  assertEquals(methodOf({ getInfo: 5 }, "getInfo"), undefined);
  for (const nothing of [null, undefined, "text", 4]) assertEquals(methodOf(nothing, "toString"), undefined);
});

Deno.test("withSnakeCase() leaves a spelling that is there", () => {
  class Both {
    getInfo() {
      return "camel";
    }
    get_info() {
      return "snake";
    }
  }
  assertEquals(new (withSnakeCase(Both))().get_info(), "snake");
});

Deno.test("addSnakeCase() adds the spelling to one object, not enumerable", () => {
  const object = addSnakeCase({ addMessage: () => 1, other: 2 });
  assertEquals(methodOf(object, "add_message")?.(), 1);
  assertEquals(Object.keys(object), ["addMessage", "other"]);
});

Deno.test("inputSchemaOf() reads input_schema, inputSchema, then get_schema()", () => {
  const schema = { type: "object", properties: { a: {} } };
  const empty = { type: "object", properties: {} };
  assertEquals(inputSchemaOf({ input_schema: schema }), schema);
  assertEquals(inputSchemaOf({ inputSchema: schema }), schema);
  assertEquals(inputSchemaOf({ get_schema: () => schema }), schema);
  assertEquals(inputSchemaOf({ getSchema: () => schema }), schema);
  for (const tool of [{}, { input_schema: {} }, { input_schema: "x" }, { input_schema: [] }]) {
    assertEquals(inputSchemaOf(tool), empty);
  }
});
