/** Receives spans over OTLP/HTTP with JSON, on loopback. */

/** A received span. Attributes with one value of the wire's union each. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  links: { traceId: string; spanId: string }[];
  events: string[];
  /** 2: error. */
  status: number;
}

/** A receiver; dispose of it after the sender has ended. */
export interface OtlpReceiver extends AsyncDisposable {
  /** Variables that make Deno send its spans here. */
  readonly env: Record<string, string>;
  readonly spans: ReceivedSpan[];
}

// deno-lint-ignore no-explicit-any -- JSON of the wire, read field by field
type Json = any;

/** Starts a receiver. */
export function receiveSpans(): OtlpReceiver {
  const spans: ReceivedSpan[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const body: Json = await request.json();
    for (const { scopeSpans } of body.resourceSpans ?? []) {
      for (const span of scopeSpans.flatMap((scope: Json) => scope.spans)) spans.push(readSpan(span));
    }
    return Response.json({});
  });
  return {
    env: {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.addr.port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    },
    spans,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function readSpan({ traceId, spanId, parentSpanId, name, kind, attributes, links, events, status }: Json) {
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind,
    attributes: Object.fromEntries(attributes.map(({ key, value }: Json) => [key, valueOf(value)])),
    links: links.map(({ traceId, spanId }: Json) => ({ traceId, spanId })),
    events: events.map(({ name }: Json) => name),
    status: status.code,
  };
}

function valueOf(value: Json): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(valueOf);
  if (value.intValue !== undefined) return Number(value.intValue);
  return Object.values(value)[0];
}

/** Returns the spans below a span as nested names, in the order of their ends. */
export function treeOf(spans: readonly ReceivedSpan[], root: ReceivedSpan): unknown {
  const below = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
  return below.length === 0 ? root.name : { [root.name]: below.map((span) => treeOf(spans, span)) };
}
