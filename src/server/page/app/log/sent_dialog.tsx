/** What the model was sent in one call: as messages and as JSON. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Data, type ModelRequest, PreampApiError, textOf } from "preamp/client";
import { sentenceOf } from "../state/failures.ts";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Copy } from "../ui/facts.tsx";
import { asText, TextBlock, visible } from "../ui/text.tsx";
import { tokens } from "../ui/units.ts";
import { noveltyOf, type SentRequests } from "./sent.ts";

interface Sent {
  readonly requests: readonly ModelRequest[];
  /** The last request of the call before in the same session. */
  readonly before: ModelRequest | undefined;
}

/** The dialog. The left and right arrow keys show the call before and after. */
export function SentDialog({ view, sent, seq, onCall, onFork, onClose }: {
  view: RunView;
  sent: SentRequests;
  seq: number;
  onCall: (seq: number) => void;
  onFork: (seq: number) => void;
  onClose: () => void;
}) {
  const [json, setJson] = useState(false);
  const [loaded, setLoaded] = useState<Sent | string | null>(null);
  const calls = view.calls.value;
  const index = calls.findIndex((call) => call.seq === seq);
  const call = calls[index];
  const earlier = calls.findLast((other) => other.seq < seq && other.session_id === call?.session_id);
  useEffect(() => {
    let is_shown = true;
    setLoaded(null);
    Promise.all([sent.of(seq), earlier ? sent.of(earlier.seq) : []])
      .then(([requests, before]) => ({ requests, before: before.at(-1) }), reasonOf)
      .then((sent) => is_shown && setLoaded(sent));
    return () => {
      is_shown = false;
    };
  }, [seq]);
  const go = (step: number) => {
    const other = calls[index + step];
    if (other) onCall(other.seq);
  };
  useEffect(() => { // of the document: a click on plain text takes the focus out of the dialog
    const onKeyDown = ({ key }: KeyboardEvent) => {
      if (key === "ArrowLeft") go(-1);
      else if (key === "ArrowRight") go(1);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  });
  return (
    <Dialog label="What the model was sent" onClose={onClose} wide>
      <div class="row wrap sent-top">
        <h2>What {call?.provider} was sent in call {index + 1} of {calls.length}</h2>
        <span class="spread" />
        <Button aria-disabled={index <= 0} onClick={() => go(-1)}>← earlier</Button>
        <Button aria-disabled={index >= calls.length - 1} onClick={() => go(1)}>later →</Button>
        <Button aria-pressed={json} onClick={() => setJson(!json)}>JSON</Button>
        <Button onClick={() => onFork(seq)}>Fork from here</Button>
        <Button onClick={onClose}>Close</Button>
      </div>
      <div class="sent" aria-live="polite" aria-busy={loaded === null}>
        {loaded === null
          ? <p class="muted">The server replays the run up to this call …</p>
          : typeof loaded === "string"
          ? <p class="failed" role="alert">{loaded}</p>
          : loaded.requests.length === 0
          ? <p class="muted">The server has not recorded this call.</p>
          : loaded.requests.map((request, index) => (
            <Request
              request={request}
              before={index === 0 ? loaded.before : loaded.requests[index - 1]}
              again={index > 0}
              json={json}
              key={`${request.seq}.${index}`}
            />
          ))}
      </div>
    </Dialog>
  );
}

function reasonOf(error: unknown): string {
  const is_known = error instanceof PreampApiError && error.code === "not_replayable";
  return `${is_known ? "What was sent cannot be computed for this run. " : ""}${sentenceOf(error)}`;
}

function Request({ request, before, again, json }: {
  request: ModelRequest;
  before: ModelRequest | undefined;
  again: boolean;
  json: boolean;
}) {
  const { messages, tools, options, usage } = request;
  const text = useMemo(() => json ? asText(request) : "", [json, request]);
  const { is_new, left_out } = useMemo(() => noveltyOf(request, before), [request, before]);
  const reported = usage &&
    `; ${tokens(Number(usage.input_tokens))} in and ${tokens(Number(usage.output_tokens))} out as reported`;
  return (
    <>
      {again && <h3 class="waiting">Sent again, shortened, because the model refused the first one</h3>}
      <div class="row wrap muted">
        <span>{tokens(request.tokens.total)} tokens, estimated{reported}</span>
        {left_out > 0 && <span class="waiting">{left_out} messages of the call before are left out</span>}
        <span class="spread" />
        <Copy text={() => asText(request)} label="copy JSON" />
      </div>
      {json ? <TextBlock text={text} label="Request as JSON" /> : (
        <>
          {messages.map((message, index) => (
            <Message
              message={message}
              count={request.tokens.messages[index]}
              is_new={is_new[index]!}
              marked={before !== undefined}
              key={index}
            />
          ))}
          <details class="tool">
            <summary>
              <strong>tools</strong>
              <span class="brief mono">{tools.map(({ name }) => name).join("  ") || "none"}</span>
              <span class="muted">{tokens(request.tokens.tools)} tokens</span>
            </summary>
            <TextBlock text={asText(tools)} label="Tools" />
          </details>
          <details class="tool">
            <summary>
              <strong>options</strong>
              <span class="brief mono">{Object.keys(options).join("  ") || "none"}</span>
            </summary>
            <TextBlock text={asText(options)} label="Options" />
          </details>
        </>
      )}
    </>
  );
}

/** A message: open if it is new, else a line. */
function Message({ message, count, is_new, marked }: {
  message: Data;
  count: number | undefined;
  is_new: boolean;
  marked: boolean;
}) {
  const { role, name, content, tool_calls } = message;
  const calls = Array.isArray(tool_calls) ? tool_calls as readonly Data[] : [];
  const text = textOf(Array.isArray(content) && calls.length > 0 ? content.filter(isNoCall) : content);
  const brief = [text.slice(0, 200), ...calls.map(({ name }) => `→ ${name}`)].join(" ").replace(/\s+/g, " ");
  return (
    <details class="tool" open={is_new}>
      <summary>
        <strong>{textOf(role)}</strong>
        <span class="brief mono">{visible(brief)}</span>
        {typeof name === "string" && <span class="mono">{visible(name)}</span>}
        {marked && is_new && <span class="done">+ new</span>}
        {count !== undefined && <span class="muted">{tokens(count)} tokens</span>}
      </summary>
      {text !== "" && <TextBlock text={text} label={`Text of ${role}`} />}
      {calls.map((call, index) => (
        <TextBlock
          text={`${call.name} ${asText(call.arguments)}`}
          label={`Call of ${call.name}`}
          key={index}
        />
      ))}
    </details>
  );
}

function isNoCall(block: Data): boolean {
  return block.type !== "tool_call";
}
