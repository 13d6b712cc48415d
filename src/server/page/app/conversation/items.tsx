/** The parts of a conversation: texts, tool calls with sub-agents nested, questions, notices. */
import type { ComponentChildren, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Item, NoticeItem, QuestionItem, TextItem, Thread, ToolItem, ToolPhase } from "preamp/client";
import { watched } from "../state/run_view.ts";
import { asText, isDiff, TextBlock, visible } from "../ui/text.tsx";
import { duration } from "../ui/units.ts";
import { Markdown } from "../ui/markdown.tsx";

/** Draws what can be done with an item: copy it, edit it, begin again from it. */
type Actions = (item: Item) => ComponentChildren;

/** Returns a function that draws an item: each once, because a row draws itself again when it changes. */
export function useRows(key: object, agent: string | null, actions?: Actions): (item: Item) => VNode {
  const rows = useMemo(() => new WeakMap<Item, VNode>(), [key]);
  return (item) => {
    let row = rows.get(item);
    if (!row) rows.set(item, row = <ItemRow item={item} agent={agent} actions={actions} key={item.key} />);
    return row;
  };
}

/** The conversation of a session, as it grows. */
export function ThreadItems({ thread, actions }: { thread: Thread; actions?: Actions }) {
  const { agent, items } = watched(thread);
  const rowOf = useRows(thread, agent, actions);
  return <div class="items">{items.map(rowOf)}</div>;
}

interface RowProps<Kind> {
  readonly item: Kind;
  /** Name of the sub-agent; null: the run's own. */
  readonly agent: string | null;
  readonly actions?: Actions | undefined;
}

function ItemRow({ item, agent, actions }: RowProps<Item>) {
  switch (item.kind) {
    case "tool":
      return <ToolRow item={item} agent={agent} actions={actions} />;
    case "notice":
      return <Notice item={item} />;
    case "question":
      return <Answered item={item} />;
    default:
      return <Text item={item} agent={agent} actions={actions} />;
  }
}

function Text({ item, agent, actions }: RowProps<TextItem>) {
  const { kind, text, done } = watched(item);
  if (kind === "thinking") {
    return (
      <details class="item thinking" aria-busy={!done}>
        <summary>{done ? "thought" : "thinking …"}</summary>
        <TextBlock text={text} label="Reasoning" />
      </details>
    );
  }
  const is_agent = kind === "text";
  const who = is_agent
    ? agent ?? "agent"
    : kind === "steering"
    ? "you, steering"
    : agent === null
    ? "you"
    : "task";
  return (
    <article class="item" aria-busy={!done}>
      <div class="who row">
        {who}
        <span class="spread" />
        {done && <span class="actions">{actions?.(item)}</span>}
      </div>
      {is_agent ? <Markdown text={text} /> : <div class="user" dir="auto">{visible(text)}</div>}
    </article>
  );
}

function Notice({ item }: { item: NoticeItem }) {
  return <p class={`item notice ${item.level}`}>{visible(item.text)}</p>;
}

/** What became of a question that was about no tool call; while it is open, its card is below. */
function Answered({ item }: { item: QuestionItem }) {
  const { question } = watched(item);
  const { prompt, status, reason, decided_by } = question;
  if (status === "pending") return null;
  const by = decided_by ? ` by ${decided_by}` : "";
  return (
    <p class={status === "granted" ? "item notice" : "item notice warning"}>
      {visible(`${prompt} ${status}${by}${reason ? `: ${reason}` : ""}`)}
    </p>
  );
}

const PHASES: Readonly<Record<ToolPhase, readonly [word: string, style: string]>> = {
  writing: ["…", "muted"],
  asking: ["◷ asks", "waiting"],
  running: ["● running", ""],
  done: ["✓", "done"],
  failed: ["✗ failed", "failed"],
  denied: ["✗ denied", "failed"],
  stopped: ["■ stopped", "muted"],
};

function ToolRow({ item, actions }: RowProps<ToolItem>) {
  const { name, phase, input, output, output_dropped, result, started, ended, thread } = watched(item);
  const [word, style] = PHASES[phase];
  const [open, setOpen] = useState(false); // a long run has thousands of calls, and few of them are open
  const time = started && ended && phase !== "denied"
    ? duration(Date.parse(ended) - Date.parse(started))
    : "";
  return (
    <>
      <details class="item tool" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{visible(name)}</strong>
          <span class="brief mono">{visible(briefOf(input))}</span>
          <span class="muted">{time}</span>
          <span class={style}>{word}</span>
        </summary>
        {open && input !== undefined && <Part title="input" value={input} />}
        {open && output !== "" && (
          <Part title={output_dropped > 0 ? "output, its end" : "output"} value={output} />
        )}
        {open && result !== undefined && (
          <Part title={phase === "done" ? "result" : "reason"} value={result} />
        )}
        {open && ended && actions && <div class="part row">{actions(item)}</div>}
      </details>
      {phase === "running" && output !== "" && (
        <pre class="item live" aria-label={`Output of ${name}`}>{visible(lastLines(output, LIVE_LINES))}</pre>
      )}
      {thread && (
        <div class="nested" role="group" aria-label={`Sub-agent ${thread.agent}`}>
          <ThreadItems thread={thread} />
        </div>
      )}
    </>
  );
}

/** Lines of a running tool's output that are shown. */
const LIVE_LINES = 10;

function lastLines(text: string, count: number): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
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
