/** The limits of a run as gauges; one that is clicked can be raised. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { hasEnded } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { now } from "../ui/facts.tsx";
import { LimitInput } from "../ui/limit_input.tsx";
import { duration } from "../ui/units.ts";
import { type ShownGauge, shownGauge } from "./gauges.ts";

/** The gauges. */
export function Limits({ state, view }: { state: AppState; view: RunView }) {
  const [raised, setRaised] = useState<string | null>(null);
  void view.count.value; // measured again with each batch of entries
  const active = !hasEnded(view.status.value);
  const until = active ? now.value : 0;
  const gauges = view.transcript.gauges(until).map(shownGauge);
  if (gauges.length === 0) return <p class="muted">…</p>;
  const waited = view.transcript.waitedMs(until);
  return (
    <ul class="gauges">
      {gauges.map((gauge) => (
        <li key={gauge.name}>
          <GaugeRow
            gauge={gauge}
            onClick={active && gauge.raisable
              ? () => setRaised(raised === gauge.name ? null : gauge.name)
              : undefined}
            open={raised === gauge.name}
          />
          {active && raised === gauge.name && (
            <RaiseForm
              state={state}
              view={view}
              gauge={gauge}
              onDone={() => setRaised(null)}
            />
          )}
        </li>
      ))}
      {waited >= 1_000 && (
        <li class="muted waited">and {duration(waited)} of waiting for a person, which no limit counts</li>
      )}
    </ul>
  );
}

function GaugeRow(
  { gauge, onClick, open }: { gauge: ShownGauge; onClick?: (() => void) | undefined; open: boolean },
) {
  const { label, used, value, text } = gauge;
  const share = value > 0 ? Math.min(1, used / value) : 1;
  const style = share >= 1 ? "failed" : share >= .8 ? "waiting" : "";
  return (
    <div class="gauge" onClick={onClick}>
      <span>{label}</span>
      <span
        class={`meter ${style}`}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={value}
        aria-valuenow={Math.min(used, value)}
        aria-valuetext={text}
      >
        <span style={{ width: `${100 * share}%` }} />
      </span>
      <span class={style || "muted"}>{share >= 1 && "! "}{text}</span>
      {onClick && (
        <Button plain aria-expanded={open} aria-label={`Raise the limit of ${label}`}>
          raise
        </Button>
      )}
    </div>
  );
}

function RaiseForm({ state, view, gauge, onDone }: {
  state: AppState;
  view: RunView;
  gauge: ShownGauge;
  onDone: () => void;
}) {
  const [value, setValue] = useState(String(gauge.value * 2));
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const { current } = form;
    const button = current?.closest("li")?.querySelector("button");
    current?.querySelector("input")?.select();
    return () => button?.focus();
  }, []);
  return (
    <form
      ref={form}
      class="row"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await state.raiseLimit(view.id, gauge.name, value)) onDone();
      }}
      onKeyDown={(event) => event.key === "Escape" && onDone()}
    >
      <LimitInput value={value} onInput={setValue} />
      <button type="submit" class="primary">Raise</button>
    </form>
  );
}
