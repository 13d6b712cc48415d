/** The list of a log's entries: only the rows that are visible are drawn, so that a long log scrolls. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import type { RunView } from "../state/run_view.ts";
import { duration } from "../ui/units.ts";
import { visible } from "../ui/text.tsx";
import { briefOf } from "./briefs.ts";
import { type LogRow, type LogRows, windowOf } from "./rows.ts";

/** Height of a row in pixels, as in log.css. */
const ROW = 20;

/** The list. One tab stop: the arrow keys move the selection, Enter opens the entry, Escape closes it. */
export function Timeline({ state, view, rows, filtered, onOpen, onClose }: {
  state: AppState;
  view: RunView;
  rows: LogRows;
  filtered: boolean;
  onOpen: () => void;
  onClose: () => void;
}) {
  void rows.version.value; // drawn again when it grows
  const box = useRef<HTMLDivElement>(null);
  const is_at_end = useRef(true);
  const last_top = useRef(0);
  const [height, setHeight] = useState(400);
  const [at, setAt] = useState(0); // the first visible row
  const count = rows.rows.length;
  const top = is_at_end.current ? Math.max(0, count * ROW - height) : at * ROW;
  const [first, end] = windowOf(top, height, ROW, count);
  const { selected_seq: { value: seq } } = state;
  const near = seq === null ? -1 : rows.indexOf(seq);
  const selected = seq !== null && rows.has(near, seq) ? near : -1;

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry!.contentRect.height));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (is_at_end.current) box.current!.scrollTop = box.current!.scrollHeight;
  }, [rows, count, height]);
  useLayoutEffect(() => {
    const { current } = box;
    if (!current || selected < 0) return;
    is_at_end.current = selected === rows.rows.length - 1;
    const { scrollTop, clientHeight } = current;
    if (selected * ROW < scrollTop) current.scrollTop = selected * ROW;
    else if ((selected + 1) * ROW > scrollTop + clientHeight) {
      current.scrollTop = (selected + 1) * ROW - clientHeight;
    }
  }, [rows, seq, selected < 0]);

  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!;
    if (scrollHeight - scrollTop - clientHeight < ROW) is_at_end.current = true;
    else if (scrollTop < last_top.current) is_at_end.current = false; // a list that grows moves nothing up
    last_top.current = scrollTop;
    setAt(Math.floor(scrollTop / ROW));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const from = seq === null && is_at_end.current ? count : near;
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    if (step !== undefined && count > 0) {
      const row = rows.rows[Math.min(count - 1, Math.max(0, from + step))]!;
      state.selected_seq.value = row.entry.seq;
    } else if (event.key === "Enter" && selected >= 0) onOpen();
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
  };
  const is_drawn = selected >= first && selected < end;
  return (
    <div class="timeline-box">
      <div
        class="timeline"
        ref={box}
        role="listbox"
        aria-label="Entries of the log"
        tabIndex={0}
        aria-activedescendant={is_drawn ? `entry-${rows.rows[selected]!.entry.seq}` : undefined}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
      >
        <div role="presentation" style={{ height: `${count * ROW}px`, paddingTop: `${first * ROW}px` }}>
          {rows.rows.slice(first, end).map((row, index) => (
            <Row
              row={row}
              started={view.entries[0]!.ts}
              selected={first + index === selected}
              position={first + index + 1}
              count={count}
              onClick={() => {
                state.selected_seq.value = row.entry.seq;
                onOpen();
              }}
              key={row.entry.seq}
            />
          ))}
        </div>
      </div>
      {filtered && (
        <p class="timeline-note muted" role="status">
          {rows.searching.value ? "searching …" : `${count} ${count === 1 ? "row" : "rows"} of this kind`}
        </p>
      )}
    </div>
  );
}

function Row({ row, started, selected, position, count, onClick }: {
  row: LogRow;
  started: string;
  selected: boolean;
  position: number;
  count: number;
  onClick: () => void;
}) {
  const { entry, depth } = row;
  const { text, style } = briefOf(row);
  return (
    <div
      id={`entry-${entry.seq}`}
      class={depth > 0 ? "log-row sub" : "log-row"}
      role="option"
      aria-selected={selected}
      aria-posinset={position}
      aria-setsize={count}
      onClick={onClick}
    >
      <span class="muted seq">{entry.seq}</span>
      <span class="event">{entry.event}{row.count > 1 && ` ×${row.count}`}</span>
      <span class={`brief ${style || "muted"}`} title={text}>{visible(text)}</span>
      <span class="muted" title={new Date(entry.ts).toLocaleString()}>
        {duration(Date.parse(entry.ts) - Date.parse(started))}
      </span>
    </div>
  );
}
