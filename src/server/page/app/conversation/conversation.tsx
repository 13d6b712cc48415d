/** The middle: the runs of a session, open questions, and the box for prompts and steering. */
import { useCallback, useEffect, useRef } from "preact/hooks";
import { Undo } from "./undo.tsx";
import type { AppState } from "../state/app_state.ts";
import { forkSeqOf } from "../state/comparison.ts";
import { hasEnded, type Item, transcriptMarkdown } from "preamp/client";
import { type Attachment, readAttachment } from "../state/attachments.ts";
import { type RunView, watched } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { Ago, Copy, Elapsed, Status } from "../ui/facts.tsx";
import { sizeOf, visible } from "../ui/text.tsx";
import { dollars, tokens } from "../ui/units.ts";
import { Empty } from "./empty.tsx";
import { ThreadItems } from "./items.tsx";
import { Questions } from "./questions.tsx";

/** The conversation pane. */
export function Conversation({ state }: { state: AppState }) {
  const runs = state.conversation.value;
  const forked_from = state.forked_from.value;
  return (
    <>
      <h2 class="hidden-text">Conversation</h2>
      <Scroll follow={state.current.value === runs.at(-1)}>
        {state.has_earlier.value && <p class="empty">The history has earlier runs of this session.</p>}
        {forked_from !== null && (
          <p class="empty">
            This conversation begins in an earlier one.{" "}
            <Button plain onClick={() => state.attempt(() => state.openSession(forked_from))}>open it</Button>
          </p>
        )}
        {runs.length === 0
          ? <Empty state={state} />
          : runs.map((view) => <RunPart state={state} view={view} key={view.id} />)}
      </Scroll>
      <Questions state={state} />
      <Composer state={state} />
    </>
  );
}

/** Follows what is written at the end, unless the user scrolled up or looks at an earlier run. */
function Scroll({ follow, children }: { follow: boolean; children: preact.ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(follow);
  follows.current = follow;
  useEffect(() => {
    const { current } = box;
    if (!current) return;
    let is_at_end = true;
    let last = 0;
    const onScroll = () => {
      const { scrollTop, scrollHeight, clientHeight } = current;
      if (scrollHeight - scrollTop - clientHeight < 40) is_at_end = true;
      else if (scrollTop < last) is_at_end = false; // content that grows moves nothing up
      last = scrollTop;
    };
    const observer = new ResizeObserver(() => {
      if (is_at_end && follows.current) current.scrollTop = current.scrollHeight;
    });
    current.addEventListener("scroll", onScroll, { passive: true });
    observer.observe(current.firstElementChild!);
    observer.observe(current);
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", onScroll);
    };
  }, []);
  return (
    <div class="scroll" ref={box} tabIndex={0} role="log" aria-label="Conversation">
      <div>{children}</div>
    </div>
  );
}

function RunPart({ state, view }: { state: AppState; view: RunView }) {
  const thread = view.thread.value;
  const box = useRef<HTMLElement>(null);
  const runs = state.conversation.value;
  const is_current = state.current.value === view && runs.length > 1;
  const is_there = thread !== null;
  useEffect(() => {
    if (is_there && is_current && runs.at(-1) !== view) box.current?.scrollIntoView({ block: "nearest" });
  }, [is_current, is_there]);
  const actions = useCallback((item: Item) => <Actions state={state} view={view} item={item} />, [view]);
  return (
    <section
      ref={box}
      class={is_current ? "run current" : "run"}
      aria-current={is_current ? "true" : undefined}
      aria-label={`Run ${view.id}`}
    >
      {thread && <ThreadItems thread={thread} actions={actions} />}
      <div class="items">
        <RunEnd state={state} view={view} />
      </div>
    </section>
  );
}

/** What can be done with a part of the conversation. */
function Actions({ state, view, item }: { state: AppState; view: RunView; item: Item }) {
  const idle = state.active.value === null && !state.is_starting.value;
  const again = () => state.beginWhatIf(view, forkSeqOf(view, item));
  const is_prompt = item.kind === "prompt";
  return (
    <>
      {(is_prompt || item.kind === "text") && <Copy text={item.text} label="copy" />}
      {is_prompt && idle && (
        <>
          <Button plain onClick={() => editIn(state, view)}>edit</Button>
          <Button plain onClick={() => state.retry(view)}>retry</Button>
        </>
      )}
      {(is_prompt || item.kind === "text" || item.kind === "tool") && (
        <Button plain onClick={again}>try again from here …</Button>
      )}
    </>
  );
}

function editIn(state: AppState, view: RunView): void {
  state.edit(view);
  document.getElementById("prompt")?.focus();
}

/** The model that is answering, and for how long. */
function Waiting({ view }: { view: RunView }) {
  const call = view.calls.value.at(-1);
  if (!call || call.ended !== null || view.status.value !== "running") return null;
  const seconds = <Elapsed from={call.started} to={null} />;
  return <p class="muted">● {call.provider} is answering … {seconds}</p>;
}

/** What became of a run. */
function RunEnd({ state, view }: { state: AppState; view: RunView }) {
  const status = view.status.value;
  if (!hasEnded(status)) return <Waiting view={view} />;
  const run = view.run.value;
  const thread = view.thread.value;
  const items = thread ? watched(thread).items : [];
  const reason = run?.error?.code ?? run?.stop_reason;
  const notices = items.filter((item) => item.kind === "notice");
  return (
    <>
      {run?.error && !notices.some(({ text }) => run.error!.message.startsWith(text)) && (
        <p class="notice error">{visible(run.error.message)}</p>
      )}
      {run?.warnings.filter(({ message }) => !notices.some(({ text }) => message.endsWith(text))).map((
        { message },
      ) => <p class="notice warning" key={message}>{visible(message)}</p>)}
      <footer class="run-end">
        <Status status={status} />
        {reason && !["end_turn", status].includes(reason) && <span>{reason}</span>}
        {view.started.value && view.ended.value && (
          <span title="duration">
            <Elapsed from={view.started.value} to={view.ended.value} />
          </span>
        )}
        {run && <span>{tokens(run.usage.total_tokens)} tokens</span>}
        {run?.usage.cost_usd && <span>{dollars(run.usage.cost_usd)}</span>}
        {view.ended.value && <Ago time={view.ended.value} />}
        <Copy text={view.id} label={`${view.id.slice(0, 10)}…`} />
        {state.current.value !== view && (
          <Button plain onClick={() => state.select(view)}>show its log</Button>
        )}
        {run?.forked_from && (
          <Button
            plain
            onClick={() => state.attempt(() => state.compare(run.forked_from!.run_id, view.id))}
          >
            compare with its origin
          </Button>
        )}
        <Undo state={state} view={view} />
        <Exports view={view} />
      </footer>
      {run?.stop_reason?.startsWith("limit:") && state.conversation.value.at(-1) === view && (
        <p class="row wrap">
          <Button class="primary" onClick={() => state.goFurther()}>
            Continue with the same limits again
          </Button>
          <span class="muted">the next run of this conversation counts from zero</span>
        </p>
      )}
    </>
  );
}

/** The run as a file: what was said as Markdown, the log as JSON. */
function Exports({ view }: { view: RunView }) {
  return (
    <span class="row">
      export
      <Button
        plain
        onClick={() => save(`${view.id}.md`, "text/markdown", transcriptMarkdown(view.transcript))}
      >
        Markdown
      </Button>
      <Button
        plain
        onClick={() => {
          const log = { run: view.run.value, events: view.entries };
          save(`${view.id}.json`, "application/json", JSON.stringify(log, null, 2));
        }}
      >
        JSON
      </Button>
    </span>
  );
}

function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Longest side of a picture in pixels; Infinity for one that the browser cannot read. */
async function longestSide(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<number> {
  const picture = await createImageBitmap(new Blob([bytes], { type })).catch(() => null);
  return picture === null ? Infinity : Math.max(picture.width, picture.height);
}

async function attach(state: AppState, files: Iterable<File>): Promise<void> {
  const chosen = [...files];
  if (chosen.length === 0) return;
  await state.attempt(async () => {
    const added = await Promise.all(chosen.map((file) => readAttachment(file, longestSide)));
    state.attachments.value = [...state.attachments.value, ...added];
  });
}

/** What goes along with the prompt: its size, and about how many tokens it takes in each model call. */
function Attachments({ state }: { state: AppState }) {
  const { value: attachments } = state.attachments;
  if (attachments.length === 0) return null;
  const drop = (attachment: Attachment) =>
    state.attachments.value = attachments.filter((other) => other !== attachment);
  return (
    <ul class="attachments" aria-label="Attached">
      {attachments.map((attachment, index) => (
        <li key={index}>
          <span>{visible(attachment.name)}</span>
          <span class="muted">{sizeOf(attachment.bytes)}, about {tokens(attachment.tokens)} tokens</span>
          <Button plain aria-label={`Remove ${attachment.name}`} onClick={() => drop(attachment)}>✕</Button>
        </li>
      ))}
    </ul>
  );
}

function Composer({ state }: { state: AppState }) {
  const active = state.active.value;
  const starting = state.is_starting.value;
  const edited = state.edited.value;
  const box = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  useEffect(() => box.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    state.run();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        state.run();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attach(state, event.dataTransfer?.files ?? []);
      }}
    >
      {edited && (
        <p class="row wrap muted">
          This takes the place of an earlier message; what followed it stays in its own conversation.
          <Button plain onClick={() => state.cancelEdit()}>leave it as it was</Button>
        </p>
      )}
      <Attachments state={state} />
      <textarea
        id="prompt"
        ref={box}
        aria-label={active ? "Steer the agent" : "Prompt"}
        placeholder={active ? "steer the agent …" : "prompt"}
        rows={2}
        dir="auto"
        value={state.prompt.value}
        onInput={(event) => state.prompt.value = event.currentTarget.value}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = event.clipboardData?.files ?? [];
          if (pasted.length === 0) return;
          event.preventDefault();
          attach(state, pasted);
        }}
      />
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={({ currentTarget: input }) => {
          attach(state, input.files ?? []).finally(() => input.value = "");
        }}
      />
      <div class="row">
        <button type="submit" class="primary" aria-disabled={starting}>
          {starting ? "Starting …" : active ? "Steer ⏎" : "Run ⏎"}
        </button>
        {active && (
          <Button onClick={() => state.stop()}>
            {active.cancelling.value ? "Stop the tool too" : "Stop"} ■
          </Button>
        )}
        {!active && <Button onClick={() => files.current?.click()}>Attach …</Button>}
        <span class="spread" />
        {!active && state.conversation.value.length > 0 && (
          <Button onClick={() => state.newConversation()}>New conversation</Button>
        )}
      </div>
    </form>
  );
}
