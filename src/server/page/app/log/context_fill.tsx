/** How full the context was in each call of a model, as bars. */
import type { Data } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { tokens } from "../ui/units.ts";
import { fillOf } from "./gauges.ts";

const HEIGHT = 48;
const STEP = 8;

/** The chart, and what it shows in words. */
export function ContextFill({ view }: { view: RunView }) {
  const { budget: reported } = (view.run.value?.context ?? {}) as Data;
  const budget = Number(reported) > 0 ? Number(reported) : view.transcript.context_budget;
  const session_id = view.entries[0]?.session_id ?? "";
  const { bars, top, summary } = fillOf(
    view.calls.value,
    view.compactions.value,
    session_id,
    budget,
  );
  const heightOf = (count: number) => Math.max(1, count / top * HEIGHT);
  const line = budget === null ? null : HEIGHT + 8 - heightOf(budget);
  return (
    <>
      {bars.length > 0 && (
        <svg
          class="fill"
          viewBox={`0 0 ${Math.max(30, bars.length) * STEP} ${HEIGHT + 8}`}
          preserveAspectRatio={bars.length > 60 ? "none" : "xMinYMax"}
          role="img"
          aria-label={summary}
        >
          {bars.map(({ seq, tokens: count, compacted }, index) => (
            <g key={seq}>
              <title>{`${tokens(count)} tokens${compacted ? ", compacted" : ""} (entry ${seq})`}</title>
              <rect
                x={index * STEP}
                y={HEIGHT + 8 - heightOf(count)}
                width={STEP - 2}
                height={heightOf(count)}
              />
              {compacted && <path d={`M${index * STEP} 0h${STEP - 2}l-3 6z`} />}
            </g>
          ))}
          {line !== null && <line x1={0} x2="100%" y1={line} y2={line} />}
        </svg>
      )}
      <p class="muted">{summary}</p>
    </>
  );
}
