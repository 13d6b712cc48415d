/** What a run has used of its limits, and how full its context is. */
import type { Data, Run } from "preamp/client";
import type { Compaction, ModelCall } from "../state/run_view.ts";
import { dollars, tokens } from "../ui/units.ts";

/** A limit of a run with what is used of it. */
export interface Gauge {
  /** Name of the limit, such as `max_tool_calls`. */
  readonly name: string;
  readonly label: string;
  readonly used: number;
  readonly value: number;
  /** `3 of 20`, with units. */
  readonly text: string;
  /** Whether it can be raised while the run is active. */
  readonly raisable: boolean;
}

const plain = (count: number) => count.toLocaleString("en");
const percent = (share: number) => share > 0 && share < .01 ? "< 1 %" : `${Math.round(100 * share)} %`;
const seconds = (count: number) => `${count < 10 ? +count.toFixed(1) : Math.floor(count)} s`;

/** Returns the limits of a run; `active_s` is the time it has taken without waits. */
export function gaugesOf(run: Run, active_s: number): Gauge[] {
  const limits = run.limits as Data;
  const gauge = (
    name: string,
    label: string,
    used: unknown,
    shown: (count: number) => string,
  ): Gauge => ({
    name,
    label,
    used: Number(used ?? 0),
    value: Number(limits[name]),
    text: `${shown(Number(used ?? 0))} of ${shown(Number(limits[name]))}`,
    raisable: name !== "max_duration_s",
  });
  return [
    gauge("max_iterations", "model calls", run.turn_count, plain),
    gauge("max_tool_calls", "tool calls", run.tool_call_count, plain),
    gauge("max_total_tokens", "tokens", run.usage.total_tokens, tokens),
    gauge("max_cost_usd", "cost", run.usage.cost_usd, dollars),
    gauge("max_duration_s", "time", active_s, seconds),
  ];
}

/** A model call in the chart of the context. */
export interface Bar {
  readonly seq: number;
  readonly tokens: number;
  /** Whether the view was made smaller for the call. */
  readonly compacted: boolean;
}

/** How the context was filled. */
export interface Fill {
  /** The last calls of the run's own session. */
  readonly bars: readonly Bar[];
  /** What the height of the chart stands for, in tokens. */
  readonly top: number;
  readonly summary: string;
}

/** Bars that are drawn. */
const MAX_BARS = 100;

/** Returns how the context of a session was filled; `budget` is null while it is unknown. */
export function fillOf(
  calls: readonly ModelCall[],
  compactions: readonly Compaction[],
  session_id: string,
  budget: number | null,
): Fill {
  const own = calls.filter((call) =>
    call.session_id === session_id && call.usage?.input_tokens !== undefined
  );
  const smaller = compactions.filter((compaction) => compaction.session_id === session_id);
  const bars = own.slice(-MAX_BARS).map(({ seq, usage }, index, shown) => {
    const end = shown[index + 1]?.seq ?? Infinity;
    // the view of a call is made between its provider:request and the answer
    const compacted = smaller.some((compaction) => compaction.seq > seq && compaction.seq < end);
    return { seq, tokens: usage!.input_tokens!, compacted };
  });
  const most = Math.max(1, ...bars.map(({ tokens }) => tokens));
  // a budget far above would make every bar invisible
  const top = budget !== null && budget < 4 * most ? Math.max(budget, most) : most;
  const last = bars.at(-1)?.tokens ?? 0;
  const share = budget ? ` of ${tokens(budget)} tokens (${percent(last / budget)})` : " tokens";
  const summary = bars.length === 0
    ? "No model call was answered yet."
    : `The last call had ${tokens(last)}${share}` +
      (smaller.length > 0 ? `; compacted ×${smaller.length}` : "") +
      (own.length > bars.length ? `; last ${bars.length} of ${own.length} calls` : "");
  return { bars, top, summary };
}
