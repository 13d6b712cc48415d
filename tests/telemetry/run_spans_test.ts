import type { Span, SpanOptions, Tracer } from "@opentelemetry/api";
import type { Entry } from "../../src/kernel/host.ts";
import { RunSpans } from "../../src/telemetry/run_spans.ts";
import { assertEquals } from "../assert.ts";

/** A tracer that lists its spans: name, attributes, and the seconds of its start and of each end. */
function listing() {
  const spans: { name: string; attributes: Record<string, unknown>; seconds: number[] }[] = [];
  const tracer = {
    startSpan(name: string, { attributes, startTime }: SpanOptions) {
      const listed = {
        name,
        attributes: { ...attributes } as Record<string, unknown>,
        seconds: startTime instanceof Date ? [startTime.getSeconds()] : [],
      };
      spans.push(listed);
      const span = {
        setAttributes: (added: object) => Object.assign(listed.attributes, added),
        setAttribute: (key: string, value: unknown) => void (listed.attributes[key] = value),
        setStatus() {},
        updateName() {},
        addEvent() {},
        end: (time: Date) => void listed.seconds.push(time.getSeconds()),
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
  let second = 0;
  const entry = (event: string, data: Entry["data"]): Entry => ({
    seq: 1,
    event,
    ts: `2026-11-21T10:00:${String(second++).padStart(2, "0")}.000Z`,
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
    entry("provider:request", { provider: "other" }),
    entry("provider:retry", usage(100)),
    entry("provider:response", { provider: "other", ...usage(5) }),
    entry("provider:response", usage(3)),
    entry("provider:response", usage(4)),
  ]);
  run.end();
  const facts = spans.slice(1).map(({ name, attributes, seconds }) => [
    name,
    attributes["gen_ai.usage.input_tokens"] ?? attributes["error.type"],
    ...seconds,
  ]);
  assertEquals(facts, [
    ["chat", 2, 0, 3],
    ["chat", 1, 1, 1],
    ["chat", "NetworkError", 2, 2],
    ["chat", 103, 4, 9],
    ["chat", 4, 5, 10],
    ["chat", 5, 6, 8],
  ]);
});
