/** One entry of the log, whole. */
import { useMemo } from "preact/hooks";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { Copy } from "../ui/facts.tsx";
import { asText, TextBlock } from "../ui/text.tsx";
import type { LogRows } from "./rows.ts";

/** The selected entry, or the deltas that one row has. */
export function EntryDetail({ view, rows, seq, onClose, onCall, onFork }: {
  view: RunView;
  rows: LogRows;
  seq: number;
  onClose: () => void;
  onCall: (seq: number) => void;
  onFork: (seq: number) => void;
}) {
  void rows.version.value; // deltas join a row
  const row = rows.rows[rows.indexOf(seq)];
  const index = seq - (view.entries[0]?.seq ?? 1); // the log has no gaps
  const count = row?.entry.seq === seq ? row.count : 1;
  const entries = view.entries.slice(index, index + count);
  const text = useMemo(() => entries.map(asText).join("\n"), [seq, entries.length]);
  const [entry] = entries;
  if (!entry) return null;
  return (
    <section
      class="entry"
      aria-label={`Entry ${seq}`}
      onKeyDown={({ key }) => key === "Escape" && onClose()}
    >
      <div class="row wrap">
        <h2>{seq} {entry.event}{count > 1 && ` ×${count}`}</h2>
        <span class="spread" />
        {entry.event === "provider:request" && <Button onClick={() => onCall(seq)}>What was sent</Button>}
        <Button onClick={() => onFork(seq)}>Fork from here</Button>
        <Copy text={text} label="copy" />
        <Button plain aria-label="Close the entry" onClick={onClose}>✕</Button>
      </div>
      <TextBlock text={text} label={`Entry ${seq} as JSON`} key={seq} />
    </section>
  );
}
