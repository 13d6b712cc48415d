/** The calls of models in a run: tokens, cost, time. */
import { useState } from "preact/hooks";
import type { ModelCall } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { dollars, duration, tokens } from "../ui/units.ts";
import { visible } from "../ui/text.tsx";

/** Rows that are shown at first, and that "more" adds. */
const SHOWN = 100;

/** The table. A click on a call opens what the model was sent. */
export function Calls({ view, onOpen }: { view: RunView; onOpen: (seq: number) => void }) {
  const [shown, setShown] = useState(SHOWN);
  const calls = view.calls.value;
  if (calls.length === 0) return <p class="muted">No model was called yet.</p>;
  const skipped = Math.max(0, calls.length - shown);
  const has = (field: "cache_read_tokens" | "cost_usd") =>
    calls.some(({ usage }) => Number(usage?.[field] ?? 0) > 0);
  const [cached, cost] = [has("cache_read_tokens"), has("cost_usd")];
  return (
    <>
      {skipped > 0 && (
        <Button plain onClick={() => setShown(shown + 10 * SHOWN)}>
          {skipped} earlier calls
        </Button>
      )}
      <table class="calls">
        <thead>
          <tr>
            <th scope="col">call</th>
            <th scope="col">model</th>
            <th scope="col">in</th>
            <th scope="col">out</th>
            {cached && <th scope="col">cached</th>}
            {cost && <th scope="col">cost</th>}
            <th scope="col">time</th>
          </tr>
        </thead>
        <tbody>
          {calls.slice(skipped).map((call, index) => (
            <CallRow
              call={call}
              number={skipped + index + 1}
              own={call.session_id === calls[0]!.session_id}
              cached={cached}
              cost={cost}
              onOpen={() => onOpen(call.seq)}
              key={call.seq}
            />
          ))}
        </tbody>
      </table>
    </>
  );
}

function CallRow({ call, number, own, cached, cost, onOpen }: {
  call: ModelCall;
  number: number;
  own: boolean;
  cached: boolean;
  cost: boolean;
  onOpen: () => void;
}) {
  const { provider, usage, started, ended, error } = call;
  const count = (value: number | undefined) => value === undefined ? "–" : tokens(value);
  return (
    <tr onClick={onOpen}>
      <th scope="row">
        <Button plain aria-label={`What the model was sent in call ${number}`}>
          {own ? "" : "↳ "}
          {number}
        </Button>
      </th>
      <td class={error ? "failed" : undefined}>
        {error ? `✗ ${provider}: ` : provider}
        {error && visible(error)}
      </td>
      <td>{count(usage?.input_tokens)}</td>
      <td>{count(usage?.output_tokens)}</td>
      {cached && <td>{count(usage?.cache_read_tokens)}</td>}
      {cost && <td>{usage?.cost_usd ? dollars(usage.cost_usd) : "–"}</td>}
      <td>{ended ? duration(Date.parse(ended) - Date.parse(started)) : "●"}</td>
    </tr>
  );
}
