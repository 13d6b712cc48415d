/** Makes spans of requests and runs through `@opentelemetry/api`. */
import { context, type Link, type SpanContext, trace, type Tracer } from "@opentelemetry/api";
import type { Entry } from "../kernel/host.ts";
import type { RunObserver } from "../runs/ports.ts";
import { textOf } from "./run_observers.ts";
import { RunSpans } from "./run_spans.ts";

/** Ended runs whose spans requests are still linked to. */
const MAX_ENDED = 100;

/** The spans of one runtime. */
export class Tracing {
  readonly #content: boolean;
  readonly #tracer: Tracer = trace.getTracer("preamp");
  /** Spans of the open runs of this process, and of the last ended ones. */
  readonly #runs = new Map<string, SpanContext>();
  /** Ids of ended runs, oldest first: a request may be answered after the end of its run. */
  readonly #ended: string[] = [];

  constructor(content: boolean) {
    this.#content = content;
  }

  /**
   * Creates the observer of a run. Its span is a child of the active one; with `earlier` entries it is linked
   * to the span of the process that wrote them.
   */
  run(
    { id, session_id, earlier }: { id: string; session_id: string; earlier: readonly Entry[] },
  ): RunObserver {
    const before = spanContextOf(earlier[0]?.data.traceparent);
    const spans = new RunSpans({
      tracer: this.#tracer,
      run_id: id,
      session_id,
      links: before ? [{ context: before }] : [],
      content: this.#content,
    });
    const own = spans.context;
    this.#runs.set(id, own);
    const inside = trace.setSpan(context.active(), spans.span);
    return {
      traceparent: traceparentOf(own),
      stored: (entries) => spans.read(entries),
      ended: () => {
        spans.end();
        if (this.#ended.push(id) > MAX_ENDED) this.#runs.delete(this.#ended.shift() ?? "");
      },
      within: (body) => context.with(inside, body),
    };
  }

  /**
   * Names the active span, which Deno made for a request, by the request's route, and links it to the run
   * that the request is about, such as the one of an approval.
   */
  nameRequest(
    { method, route, run_id }: { method: string; route: string | null; run_id: string | null },
  ): void {
    const span = trace.getActiveSpan();
    if (!span) return;
    if (route !== null) {
      span.setAttribute("http.route", route);
      span.updateName(`${method} ${route}`);
    }
    if (run_id === null) return;
    span.setAttribute("preamp.run.id", run_id);
    const run = this.#runs.get(run_id);
    if (run && run.traceId !== span.spanContext().traceId) span.addLink({ context: run } satisfies Link);
  }
}

/** Returns a span's context as a W3C `traceparent`. */
function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

function spanContextOf(traceparent: unknown): SpanContext | null {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(textOf(traceparent));
  if (!match) return null;
  const [, traceId = "", spanId = "", flags = ""] = match;
  return { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
}
