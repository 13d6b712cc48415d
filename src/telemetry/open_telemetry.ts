/** Finds out whether something receives spans, and imports the rest only then. */
import type { Tracing } from "./tracing.ts";

/**
 * Where `@opentelemetry/api` 1.x keeps what is registered: by Deno with `OTEL_DENO=true`, or by an
 * application.
 */
const REGISTRY = Symbol.for("opentelemetry.js.api.1");

/** The tracing of one runtime. */
export class OpenTelemetry {
  readonly #content: boolean;
  #tracing: Promise<Tracing> | undefined;

  /** @param content Whether spans have prompts, answers, and inputs and outputs of tools. */
  constructor({ content }: { content: boolean }) {
    this.#content = content;
  }

  /** Returns the tracing, or null while spans are not received. */
  load(): Promise<Tracing> | null {
    if (this.#tracing) return this.#tracing;
    if (!isReceived()) return null;
    return this.#tracing = import("./tracing.ts").then(({ Tracing }) => new Tracing(this.#content));
  }
}

function isReceived(): boolean {
  const registered = (globalThis as Record<symbol, unknown>)[REGISTRY] as { trace?: unknown } | undefined;
  return registered?.trace !== undefined;
}
