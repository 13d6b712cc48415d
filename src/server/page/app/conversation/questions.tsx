/** Questions to the user: may this call run, may this limit be raised. */
import type { ComponentChildren } from "preact";
import type { Question } from "preamp/client";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { Button } from "../ui/button.tsx";
import { Countdown } from "../ui/facts.tsx";
import { LimitInput } from "../ui/limit_input.tsx";
import { asText, isDiff, TextBlock, visible } from "../ui/text.tsx";

interface CardProps {
  readonly state: AppState;
  readonly question: Question;
}

/** All open questions, the oldest first. */
export function Questions({ state }: { state: AppState }) {
  const questions = state.open_questions.value;
  if (questions.length === 0) return null;
  return (
    <section class="questions" aria-label="Questions">
      {questions.map((question) =>
        question.limit
          ? <LimitCard state={state} question={question} limit={question.limit} key={question.id} />
          : <ApprovalCard state={state} question={question} key={question.id} />
      )}
    </section>
  );
}

/** Returns which of two runs asks, when they are shown side by side. */
function sideOf({ compared: { value: compared } }: AppState, { run_id }: Question): string {
  return compared === null ? "" : run_id === compared.left.id ? "A: " : "B: ";
}

/** A question with what answers it. The prompt gets the focus when the card that has it is answered. */
function Card({ state, question, onSubmit, children }: CardProps & {
  onSubmit?: () => void;
  children: ComponentChildren;
}) {
  const { prompt, expires_at } = question;
  const card = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const { current } = card;
    return () => {
      if (current?.contains(document.activeElement)) document.getElementById("prompt")?.focus();
    };
  }, []);
  return (
    <form
      ref={card}
      class="question"
      aria-label={prompt}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit?.();
      }}
    >
      <div class="row">
        <strong dir="auto">{sideOf(state, question)}{visible(prompt)}</strong>
        <span class="spread" />
        <span class="waiting">
          ◷ expires in <Countdown to={expires_at} />
        </span>
      </div>
      {children}
    </form>
  );
}

/** Whether an option holds for one call only: then a hook offers nothing that lasts. */
function isPlain(option: Question["options"][number]): boolean {
  return typeof option === "string"
    ? /^(allow|allow once|deny)$/i.test(option)
    : option.remember === undefined;
}

function ApprovalCard({ state, question }: CardProps) {
  const [reason, setReason] = useState("");
  const { tool_name, tool_input, preview, options } = question;
  const input = asText(tool_input ?? {});
  const { command } = tool_input ?? {};
  const is_command = typeof command === "string";
  const calls = is_command ? "this command" : visible(tool_name ?? "");
  return (
    <Card state={state} question={question}>
      {preview && <TextBlock text={preview} label={`What ${tool_name} would do`} diff={isDiff(preview)} />}
      {!preview && is_command && <TextBlock text={`$ ${command}`} label="Command" />}
      {!preview && !is_command && <TextBlock text={input} label="Exact input" />}
      {(preview || is_command) && tool_input && (
        <details>
          <summary class="muted">exact input</summary>
          <TextBlock text={input} label="Exact input" />
        </details>
      )}
      <div class="row wrap">
        {options.map((option, index) => {
          const label = typeof option === "string" ? option : option.label;
          const denies = typeof option === "string" ? /^(deny|no)\b/i.test(option) : option.effect === "deny";
          return (
            <Button
              class={index === 0 ? "primary" : undefined}
              onClick={() => state.answer(question, label, denies ? reason : undefined)}
              key={label}
            >
              {visible(label)}
            </Button>
          );
        })}
        {tool_name !== null && (
          <Button onClick={() => state.allowFor("run", question)}>Allow {calls} for this run</Button>
        )}
        {tool_name !== null && options.every(isPlain) && (
          <Button onClick={() => state.allowFor("conversation", question)}>
            Allow {calls} in this conversation
          </Button>
        )}
        <input
          class="spread"
          aria-label="Reason, if you deny"
          placeholder="reason, if you deny: the model reads it"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </div>
    </Card>
  );
}

function LimitCard({ state, question, limit }: CardProps & { limit: NonNullable<Question["limit"]> }) {
  const [value, setValue] = useState(String(Number(limit.value) * 2));
  return (
    <Card
      state={state}
      question={question}
      onSubmit={() => state.raiseLimit(question.run_id, limit.name, value)}
    >
      <div class="row wrap">
        <LimitInput value={value} onInput={setValue} />
        <button type="submit" class="primary">Raise to {value} and continue</button>
        <Button onClick={() => state.answer(question, "deny")}>Stop here</Button>
      </div>
    </Card>
  );
}
