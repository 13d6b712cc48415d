import type { Span, SpanOptions, Tracer } from "@opentelemetry/api";
import type { Entry } from "../../src/kernel/host.ts";
import { RunSpans } from "../../src/telemetry/run_spans.ts";
import { assertEquals } from "../assert.ts";

/** A tracer that lists its spans: name, and attributes and end, once there are any. */
function listing() {
  const spans: { name: string; attributes: Record<string, unknown>; ends: number }[] = [];
  const tracer = {
    startSpan(name: string, { attributes }: SpanOptions) {
      const listed = { name, attributes: { ...attributes } as Record<string, unknown>, ends: 0 };
      spans.push(listed);
      const span = {
        setAttributes: (added: object) => Object.assign(listed.attributes, added),
        setAttribute: (key: string, value: unknown) => void (listed.attributes[key] = value),
        setStatus() {},
        updateName() {},
        end: () => void listed.ends++,
        spanContext: () => ({ traceId: "0", spanId: "0", traceFlags: 1 }),
      };
      return span as unknown as Span; // the methods that are used
    },
  };
  return { spans, tracer: tracer as unknown as Tracer };
}

Deno.test("each model call has a span of its own that ends once: one after another, at once, and of a module", () => {
  const { spans, tracer } = listing();
  const run = new RunSpans({ tracer, run_id: "run_1", session_id: "ses_1", links: [], content: false });
  const entry = (event: string, data: Entry["data"]): Entry => ({
    seq: 1,
    event,
    ts: "2026-11-21T10:00:00.000Z",
    run_id: "run_1",
    session_id: "ses_1",
    data: { provider: "mock", ...data },
  });
  const usage = (input_tokens: number) => ({ usage: { input_tokens, output_tokens: 0 } });
  run.read([
    entry("provider:request", {}),
    entry("provider:response", { inner: true, ...usage(1) }),
    entry("provider:error", { inner: true, error: { type: "NetworkError" } }),
    entry("provider:response", usage(2)),
    entry("provider:request", {}),
    entry("provider:request", {}),
    entry("provider:response", usage(3)),
    entry("provider:response", usage(4)),
  ]);
  run.end();
  const facts = spans.slice(1).map(({ name, attributes, ends }) => [
    name,
    attributes["gen_ai.usage.input_tokens"] ?? attributes["error.type"],
    ends,
  ]);
  assertEquals(facts, [
    ["chat", 2, 1],
    ["chat", 1, 1],
    ["chat", "NetworkError", 1],
    ["chat", undefined, 1],
    ["chat", 3, 1],
    ["chat", 4, 1],
  ]);
});
