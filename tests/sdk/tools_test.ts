import {
  parseToolCall,
  sanitizeText,
  serializeOutput,
  ToolCall,
  toolFailure,
  ToolResult,
  toToolResult,
} from "../../src/sdk/tools.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

Deno.test("ToolResult() takes the error's message as output when a failure has none", () => {
  const result = ToolResult({ success: false, error: { message: "no such file" } });
  assertEquals(result.output, "no such file");
});

Deno.test("ToolResult() keeps the output of a failure that has one", () => {
  const result = ToolResult({ success: false, output: { code: 2 }, error: { message: "no such file" } });
  assertEquals(result.output, { code: 2 });
});

Deno.test("getSerializedOutput() is the JSON of an object, also on failure", () => {
  assertEquals(ToolResult({ success: false, output: { a: 1 } }).getSerializedOutput(), '{"a":1}');
  assertEquals(ToolResult({ output: [1, "x"] }).get_serialized_output(), '[1,"x"]');
});

Deno.test("getSerializedOutput() returns a text for a success and a failure without output", () => {
  assertEquals(ToolResult().getSerializedOutput(), "Success");
  assertEquals(serializeOutput({ success: false, output: null, error: { message: "msg" } }), "Error: msg");
  assertEquals(
    ToolResult({ success: false, error: { code: 1 } }).getSerializedOutput(),
    "Error: Unknown error",
  );
  assertEquals(ToolResult({ success: false }).getSerializedOutput(), "Error: Failed");
});

Deno.test("getSerializedOutput() drops control characters and lone surrogates, keeps tab and line ends", () => {
  const output = "a\u0000b\u009fc\ud800d\te\r\nf\udc00g\u{1f600}";
  assertEquals(ToolResult({ output }).getSerializedOutput(), "abcd\te\r\nfg\u{1f600}");
});

Deno.test("getSerializedOutput() writes other values as text", () => {
  assertEquals(ToolResult({ output: true }).getSerializedOutput(), "true");
  assertEquals(ToolResult({ output: 0 }).getSerializedOutput(), "0");
  assertEquals(ToolResult({ output: 10n ** 20n }).getSerializedOutput(), "100000000000000000000");
  assertEquals(ToolResult({ output: new Date(0) }).getSerializedOutput(), "1970-01-01T00:00:00.000Z");
  assertEquals(ToolResult({ output: new Map([["a", new Set([1])]]) }).getSerializedOutput(), '{"a":[1]}');
});

Deno.test("toString() says Success for what Python calls false", () => {
  for (const output of [0, "", [], {}, false, null]) assertEquals(String(ToolResult({ output })), "Success");
  assertEquals(String(ToolResult({ output: "done" })), "done");
  assertEquals(String(ToolResult({ success: false, error: { message: "bad" } })), "Error: bad");
  assertEquals(String(ToolResult({ success: false })), "Failed");
});

Deno.test("ToolResult() refuses a success that is no boolean and an error that is no object", () => {
  assertThrows(
    () => ToolResult({ success: "yes" as never }),
    TypeError,
    'success must be a boolean: received "yes"',
  );
  assertThrows(() => ToolResult({ error: "bad" as never }), TypeError, "error must be an object");
});

Deno.test("ToolResult() serialises to its three fields", () => {
  assertEquals(plain(ToolResult({ output: "x" })), { success: true, output: "x", error: null });
});

Deno.test("parseToolCall() reads tool, input and a missing id, aliases readable", () => {
  const call = parseToolCall({ tool: "bash", input: { command: "ls" } });
  assertEquals([call.name, call.tool], ["bash", "bash"]);
  assertEquals(call.arguments, { command: "ls" });
  assert(call.input === call.arguments);
  assertMatch(call.id, /^call_[0-9a-f-]{36}$/);
});

Deno.test("parseToolCall() serialises to the canonical fields only", () => {
  const call = parseToolCall({ id: "call_1", tool: "bash", input: { command: "ls" } });
  assertEquals(plain(call), { id: "call_1", name: "bash", arguments: { command: "ls" } });
});

Deno.test("parseToolCall() reads arguments that are JSON text", () => {
  assertEquals(parseToolCall({ name: "a", arguments: '{"x":1}' }).arguments, { x: 1 });
  assertEquals(parseToolCall({ name: "a", arguments: "  " }).arguments, {});
});

Deno.test("parseToolCall() reads the function form of chat completions", () => {
  const call = parseToolCall({ id: "c", type: "function", function: { name: "f", arguments: '{"x":1}' } });
  assertEquals(plain(call), { id: "c", name: "f", arguments: { x: 1 } });
});

Deno.test("parseToolCall() keeps extra fields", () => {
  assertEquals(plain(parseToolCall({ id: "c", name: "f", thought_signature: "s" })), {
    id: "c",
    name: "f",
    arguments: {},
    thought_signature: "s",
  });
});

Deno.test("parseToolCall() keeps arguments it cannot read as invalid_arguments, also when parsed again", () => {
  for (const [given, kept] of [["{x:", "{x:"], ["[1]", "[1]"], [[1], "[1]"], ['"text"', '"text"']] as const) {
    const call = parseToolCall({ id: "c", name: "f", arguments: given });
    assertEquals(call.arguments, {});
    assertEquals(call.invalid_arguments, kept);
    assertEquals(parseToolCall(call).invalid_arguments, kept);
  }
  assertEquals(parseToolCall({ name: "f", arguments: {} }).invalid_arguments, undefined);
});

Deno.test("parseToolCall() copies no prototype from its argument", () => {
  const call = parseToolCall(JSON.parse('{"name":"f","__proto__":{"evil":true}}'));
  assertEquals((call as { evil?: unknown }).evil, undefined);
});

Deno.test("ToolCall() refuses a call that names no tool", () => {
  assertThrows(() => ToolCall({ id: "c" }), TypeError, "name must be a non-empty string");
});

Deno.test("toToolResult() reads whatever a tool returned", () => {
  const cases: [unknown, unknown][] = [
    ["text", { success: true, output: "text", error: null }],
    [undefined, { success: true, output: null, error: null }],
    [null, { success: true, output: null, error: null }],
    [{ rows: [1] }, { success: true, output: { rows: [1] }, error: null }],
    [[1, 2], { success: true, output: [1, 2], error: null }],
    [{ success: true, output: "Hello!" }, { success: true, output: "Hello!", error: null }],
    [{ success: false, error: "bad" }, { success: false, output: "bad", error: { message: "bad" } }],
    [{ is_error: true, output: "bad" }, { success: false, output: "bad", error: null }],
    [{ success: "maybe" }, { success: true, output: { success: "maybe" }, error: null }],
    [ToolResult({ success: false, error: { code: "E" } }), {
      success: false,
      output: null,
      error: { code: "E" },
    }],
  ];
  for (const [given, expected] of cases) assertEquals(plain(toToolResult(given)), expected);
});

Deno.test("toToolResult() stores a plain object as the output", () => {
  assertEquals(toToolResult({ success: true, output: "Hello!" }).getSerializedOutput(), "Hello!");
});

Deno.test("toToolResult() shares nothing with the tool's own objects", () => {
  const rows = [1];
  const result = toToolResult({ success: true, output: { rows } });
  rows.push(2);
  assertEquals(result.output, { rows: [1] });
});

Deno.test("toolFailure() has its facts in addition to the message", () => {
  assertEquals(plain(toolFailure("late", { code: "tool_timeout" })), {
    success: false,
    output: "late",
    error: { message: "late", code: "tool_timeout" },
  });
});

Deno.test("sanitizeText() leaves well-formed text untouched", () => {
  const text = "naïve ∑ 日本 \u{1f468}\u200d\u{1f469}\tend\n";
  assertEquals(sanitizeText(text), text);
});

Deno.test("toToolResult() freezes output and error, and takes them in once", () => {
  const first = toToolResult({ success: false, output: { rows: [1] }, error: { message: "half" } });
  const second = toToolResult(first);
  const { output, error } = first as { output: { rows: number[] }; error: object };
  assertEquals([output, output.rows, error].map(Object.isFrozen), [true, true, true]);
  assertEquals([second.output === output, second.error === error], [true, true]);
});
