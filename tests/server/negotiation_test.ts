import { assertEquals } from "../assert.ts";
import { parseMediaType, parsePrefer, preferredType } from "../../src/server/negotiation.ts";

const OFFERED = ["application/json", "text/plain", "text/event-stream"] as const;

for (
  const [header, expected] of [
    [null, "application/json"],
    ["", "application/json"],
    ["*/*", "application/json"],
    ["application/json", "application/json"],
    ["TEXT/Event-Stream", "text/event-stream"],
    ["text/*", "text/plain"],
    ["text/html,application/xhtml+xml,*/*;q=0.8", "application/json"],
    ["application/json;q=0.5, text/event-stream", "text/event-stream"],
    ["text/event-stream, application/json", "text/event-stream"],
    ["application/json, text/event-stream", "application/json"],
    ["application/json;q=0, text/plain;q=0.1", "text/plain"],
    ['text/plain;x="a,b;q=0";q=0.9, application/json;q=0.8', "text/plain"],
    ["application/json;q=0, */*", "text/plain"],
    ["*/*, application/json;q=0", "text/plain"],
    ["application/json;q=0, text/plain;q=0.0, */*", "text/event-stream"],
    ["application/*;q=0, */*;q=0.1", "text/plain"],
    ["text/*;q=0, text/event-stream", "text/event-stream"],
    ["text/*, text/plain;q=0", "text/event-stream"],
    ["text/event-stream;q=0.5, application/json", "application/json"],
    ["text/event-stream, */*;q=0.1", "text/event-stream"],
    ["application/*", "application/json"],
    ["application/json;q=0", "application/json"],
    ["*/*;q=0", "application/json"],
    ["application/json;q=0, text/*;q=0", "application/json"],
    ["application/json;q=x, text/plain;q=0.1", "text/plain"],
    ["application/json;q=, text/plain;q=0.1", "text/plain"],
    ["text/plain;q=-1, */*;q=0.1", "application/json"],
    ["image/png", "application/json"],
    ["text/plain;q=2", "application/json"],
    [",;,=,;q", "application/json"],
  ] as const
) {
  Deno.test(`preferredType() returns ${expected} for ${JSON.stringify(header)}`, () => {
    assertEquals(preferredType(header, OFFERED), expected);
  });
}

for (
  const [header, expected] of [
    [null, { respond_async: false, wait: false }],
    ["wait", { respond_async: false, wait: true }],
    ["Respond-Async, wait=10", { respond_async: true, wait: 10 }],
    ['wait="3"; x=y, wait=9', { respond_async: false, wait: 3 }],
    ["wait=soon", { respond_async: false, wait: true }],
    ["handling=lenient", { respond_async: false, wait: false }],
    ["status, wait", { respond_async: false, wait: true, status: true }],
  ] as const
) {
  Deno.test(`parsePrefer() parses ${JSON.stringify(header)}`, () => {
    assertEquals(parsePrefer(header), { status: false, ...expected });
  });
}

for (
  const [header, expected] of [
    [null, { type: "", charset: null, boundary: null }],
    ["application/json", { type: "application/json", charset: null, boundary: null }],
    ['Application/JSON ; Charset="UTF-8"', { type: "application/json", charset: "utf-8", boundary: null }],
    ['multipart/form-data; boundary="a;charset=x"', {
      type: "multipart/form-data",
      charset: null,
      boundary: "a;charset=x",
    }],
  ] as const
) {
  Deno.test(`parseMediaType() parses ${JSON.stringify(header)}`, () => {
    assertEquals(parseMediaType(header), { ...expected });
  });
}
