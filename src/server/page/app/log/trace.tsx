/** The trace: a row for each model call, tool and wait, with a bar over the time of the run. */
import { useMemo, useState } from "preact/hooks";
import { hasEnded } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { now } from "../ui/facts.tsx";
import { visible } from "../ui/text.tsx";
import { dollars, duration, tokens } from "../ui/units.ts";
import { type Span, spansOf } from "./trace.ts";

/** Rows that are shown at first, and that "earlier" adds. */
const SHOWN = 200;

/** The list. A click on a model call opens what it was sent, on another row its entry. */
export function Trace({ view, onCall, onEntry }: {
  view: RunView;
  onCall: (seq: number) => void;
  onEntry: (seq: number) => void;
}) {
  const [shown, setShown] = useState(SHOWN);
  const { value: count } = view.count; // drawn again as the log grows
  const spans = useMemo(() => spansOf(view.transcript), [view, count]); // not with each tick of the clock
  const { started, ended } = view.transcript;
  if (started === null) return <p class="empty">…</p>;
  const from = Date.parse(started);
  const active = !hasEnded(view.status.value);
  const until = ended === null ? active ? Math.max(now.value, from) : from : Date.parse(ended);
  const skipped = Math.max(0, spans.length - shown);
  return (
    <div class="trace scroll" tabIndex={0} role="region" aria-label="Trace">
      {spans.length === 0 && <p class="empty">No model was called yet.</p>}
      {skipped > 0 && <Button plain onClick={() => setShown(shown + 5 * SHOWN)}>{skipped} earlier</Button>}
      <ol>
        {spans.slice(skipped).map((span) => (
          <SpanRow
            span={span}
            from={from}
            until={until}
            onOpen={() => span.kind === "model" ? onCall(span.seq) : onEntry(span.detail_seq)}
            key={span.key}
          />
        ))}
      </ol>
    </div>
  );
}

const KINDS: Readonly<Record<Span["kind"], string>> = { model: "model", tool: "tool", wait: "wait for" };

function SpanRow({ span, from, until, onOpen }: {
  span: Span;
  from: number;
  until: number;
  onOpen: () => void;
}) {
  const { kind, name, brief, depth, started, ended, tokens: count, cost_usd, style } = span;
  const end = ended ?? until;
  const whole = Math.max(1, until - from);
  const time = ended === null ? "●" : duration(ended - started);
  const facts = [
    ...(count === null ? [] : [`${tokens(count)} tokens`]),
    ...(cost_usd === null ? [] : [dollars(cost_usd)]),
    time,
  ];
  return (
    <li style={{ "--depth": Math.min(depth, 6) }}>
      <Button class="plain span" onClick={onOpen}>
        <span class="span-name">
          <span class="muted">{KINDS[kind]}</span> <strong>{visible(name)}</strong>{" "}
          {brief !== "" && <span class={style === "failed" ? "failed" : "muted"}>{visible(brief)}</span>}
        </span>
        <span class="span-facts muted">{facts.join(" · ")}</span>
        <span class="span-time" aria-hidden="true">
          <span
            class={`bar ${kind} ${style}`}
            style={{
              left: `${100 * Math.max(0, started - from) / whole}%`,
              width: `${100 * Math.max(0, end - started) / whole}%`,
            }}
          />
        </span>
      </Button>
    </li>
  );
}
