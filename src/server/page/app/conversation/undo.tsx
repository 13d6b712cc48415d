/** Puts back the files that a run has changed. */
import { useState } from "preact/hooks";
import type { Entry } from "preamp/client";
import type { AppState } from "../state/app_state.ts";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { visible } from "../ui/text.tsx";

interface Report {
  readonly undone: readonly { readonly path: string; readonly action: string }[];
  readonly not_undone: readonly { readonly path: string; readonly reason: string }[];
}

/** A button at the end of a run that has changed files, and what it did. */
export function Undo({ state, view }: { state: AppState; view: RunView }) {
  const [report, setReport] = useState<Report | null>(null);
  void view.count.value; // the entries may come after the end is known
  if (!view.entries.some(changesFiles)) return null;
  const undo = async () => {
    const result = await state.undo(view);
    if (result) setReport(result as unknown as Report); // the answer of POST /v1/runs/{id}/undo
  };
  if (report === null) return <Button plain onClick={undo}>undo its files</Button>;
  const { undone, not_undone } = report;
  return (
    <div role="status">
      <ul class="plan-changes" aria-label="Undone files">
        {undone.length + not_undone.length === 0 && <li>No file is left to undo.</li>}
        {undone.map(({ path, action }) => (
          <li key={path}>
            <span class="done">✓ {action}</span> {visible(path)}
          </li>
        ))}
        {not_undone.map(({ path, reason }) => (
          <li key={path}>
            <span class="failed">✗ not undone</span> {visible(path)}: {visible(reason)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Whether an entry is the success of a tool whose changes of files are kept for undo. */
function changesFiles({ event, data }: Entry): boolean {
  if (event !== "tool:post") return false;
  const { success } = (data.result ?? {}) as { success?: boolean };
  return success !== false && /^(write|edit|apply_patch)$/.test(String(data.tool_name));
}
