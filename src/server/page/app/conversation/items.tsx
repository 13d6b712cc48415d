/** The parts of a conversation: texts, tool calls with sub-agents nested, notices. */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Item, NoticeItem, TextItem, Thread, ToolItem, ToolPhase } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { asText, isDiff, TextBlock, visible } from "../ui/text.tsx";
import { duration } from "../ui/units.ts";
import { Markdown } from "../ui/markdown.tsx";

/** Starts the run again with another plan from where an item began. */
type Again = (item: Item) => void;

/** Returns a function that draws an item: each once, because what changes in a row is a signal. */
export function useRows(key: object, agent: string | null, again?: Again): (item: Item) => VNode {
  const rows = useMemo(() => new WeakMap<Item, VNode>(), [key]);
  return (item) => {
    let row = rows.get(item);
    if (!row) rows.set(item, row = <ItemRow item={item} agent={agent} again={again} key={item.key} />);
    return row;
  };
}

/** The conversation of a session, as it grows. */
export function ThreadItems({ thread, again }: { thread: Thread; again?: Again }) {
  void thread.version.value; // drawn again when it grows
  const rowOf = useRows(thread, thread.agent, again);
  return <div class="items">{thread.items.map(rowOf)}</div>;
}

interface RowProps<Kind> {
  readonly item: Kind;
  /** Name of the sub-agent; null: the run's own. */
  readonly agent: string | null;
  readonly again?: Again | undefined;
}

function ItemRow({ item, agent, again }: RowProps<Item>) {
  if (item.kind === "tool") return <ToolRow item={item} agent={agent} again={again} />;
  if (item.kind === "notice") return <Notice item={item} />;
  return <Text item={item} agent={agent} again={again} />;
}

function AgainButton({ item, again }: { item: Item; again: Again | undefined }) {
  if (!again) return null;
  return <Button class="plain again" onClick={() => again(item)}>try again from here …</Button>;
}

function Text({ item, agent, again }: RowProps<TextItem>) {
  const text = item.text.value;
  if (item.kind === "user" || item.kind === "steering") {
    return (
      <article class="item">
        <div class="who row">
          {item.kind === "user" ? agent === null ? "you" : "task" : "you, steering"}
          <span class="spread" />
          {item.kind === "user" && <AgainButton item={item} again={again} />}
        </div>
        <div class="user" dir="auto">{visible(text)}</div>
      </article>
    );
  }
  if (item.kind === "thinking") {
    return (
      <details class="item thinking" aria-busy={!item.done.value}>
        <summary>{item.done.value ? "thought" : "thinking …"}</summary>
        <TextBlock text={text} label="Reasoning" />
      </details>
    );
  }
  return (
    <article class="item" aria-busy={!item.done.value}>
      <div class="who row">
        {agent ?? "agent"}
        <span class="spread" />
        {item.done.value && <AgainButton item={item} again={again} />}
      </div>
      <Markdown text={text} />
    </article>
  );
}

function Notice({ item }: { item: NoticeItem }) {
  return <p class={`item notice ${item.level}`}>{visible(item.text)}</p>;
}

const PHASES: Readonly<Record<ToolPhase, readonly [word: string, style: string]>> = {
  writing: ["…", "muted"],
  asking: ["◷ asks", "waiting"],
  running: ["● running", ""],
  done: ["✓", "done"],
  failed: ["✗ failed", "failed"],
  denied: ["✗ denied", "failed"],
};

function ToolRow({ item, again }: RowProps<ToolItem>) {
  const { phase, input, output, started, ended } = item.state.value;
  const thread = item.thread.value;
  const [word, style] = PHASES[phase];
  const [open, setOpen] = useState(false); // a long run has thousands of calls, and few of them are open
  const time = started && ended && phase !== "denied"
    ? duration(Date.parse(ended) - Date.parse(started))
    : "";
  return (
    <>
      <details class="item tool" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{visible(item.name)}</strong>
          <span class="brief mono">{visible(briefOf(input))}</span>
          <span class="muted">{time}</span>
          <span class={style}>{word}</span>
        </summary>
        {open && input !== undefined && <Part title="input" value={input} />}
        {open && output !== undefined && (
          <Part title={phase === "done" ? "result" : "reason"} value={output} />
        )}
        {open && ended && again && (
          <div class="part">
            <AgainButton item={item} again={again} />
          </div>
        )}
      </details>
      {thread && (
        <div class="nested" role="group" aria-label={`Sub-agent ${thread.agent}`}>
          <ThreadItems thread={thread} />
        </div>
      )}
    </>
  );
}

function Part({ title, value }: { title: string; value: unknown }) {
  const text = asText(value);
  return (
    <div class="part">
      <h3>{title}</h3>
      <TextBlock text={text} label={title} diff={isDiff(text)} />
    </div>
  );
}

/** Returns the first values of an input in one line. */
function briefOf(input: unknown): string {
  if (input === undefined) return "";
  if (typeof input !== "object" || input === null) return String(input).slice(0, 200);
  const values = Object.values(input).slice(0, 3).map((value) =>
    (typeof value === "string" ? value : JSON.stringify(value) ?? "").slice(0, 120)
  );
  return values.join("  ").replace(/\s+/g, " ");
}
