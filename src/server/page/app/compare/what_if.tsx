/** The line that says from where a run is about to be started, while its plan is changed. */
import { useEffect } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { Button } from "../ui/button.tsx";

/** Shown while the plan of a run is changed for a new run from one of its entries. */
export function WhatIfBar({ state }: { state: AppState }) {
  const what_if = state.what_if.value;
  useEffect(() => {
    if (what_if) document.getElementById("plan-text")?.focus();
  }, [what_if]);
  if (what_if === null) return null;
  const { view, seq } = what_if;
  return (
    <div class="banner wrap" role="region" aria-label="What if">
      <p>
        <strong>What if?</strong> Change the plan, then run again from entry {seq}{" "}
        ({view.entries[seq - 1]?.event}) in a new session.{" "}
        {!state.plan.is_changed.value && <span class="muted">The plan is unchanged so far.</span>}
      </p>
      <Button class="primary" onClick={() => state.runWhatIf()}>Run from entry {seq}</Button>
      <Button onClick={() => state.cancelWhatIf()}>Cancel</Button>
    </div>
  );
}
