/** What a run has used of its limits, and how full its context is. */
import type { Compaction, Gauge, ModelCall } from "preamp/client";
import { dollars, tokens } from "../ui/units.ts";

/** A gauge as it is drawn. */
export interface ShownGauge extends Gauge {
  readonly label: string;
  /** `3 of 20`, with units. */
  readonly text: string;
  /** Whether it can be raised while the run is active. */
  readonly raisable: boolean;
}

const plain = (count: number) => count.toLocaleString("en");
const percent = (share: number) => share > 0 && share < .01 ? "< 1 %" : `${Math.round(100 * share)} %`;
const seconds = (count: number) => `${count < 10 ? +count.toFixed(1) : Math.floor(count)} s`;

const LABELS: Readonly<Record<string, readonly [label: string, shown: (count: number) => string]>> = {
  max_iterations: ["model calls", plain],
  max_tool_calls: ["tool calls", plain],
  max_total_tokens: ["tokens", tokens],
  max_cost_usd: ["cost", dollars],
  max_duration_s: ["time", seconds],
};

/** Returns a gauge with its words. */
export function shownGauge(gauge: Gauge): ShownGauge {
  const { name, used, value } = gauge;
  const [label, shown] = LABELS[name] ?? [name, plain];
  return { ...gauge, label, text: `${shown(used)} of ${shown(value)}`, raisable: name !== "max_duration_s" };
}

/** A model call in the chart of the context. */
interface Bar {
  readonly seq: number;
  readonly tokens: number;
  /** Whether the view was made smaller for the call. */
  readonly compacted: boolean;
}

/** How the context was filled. */
interface Fill {
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
  const top = Math.max(1, budget ?? 0, ...bars.map(({ tokens }) => tokens));
  const last = bars.at(-1)?.tokens ?? 0;
  const share = budget ? ` of ${tokens(budget)} tokens (${percent(last / budget)})` : " tokens";
  const summary = bars.length === 0
    ? "No model call was answered yet."
    : `The last call had ${tokens(last)}${share}` +
      (smaller.length > 0 ? `; compacted ×${smaller.length}` : "") +
      (own.length > bars.length ? `; last ${bars.length} of ${own.length} calls` : "");
  return { bars, top, summary };
}
