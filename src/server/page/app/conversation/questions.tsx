/** Questions to the user: may this call run, may this limit be raised. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import type { Question } from "../state/run_view.ts";
import { Countdown } from "../ui/facts.tsx";
import { asText, isDiff, TextBlock, visible } from "../ui/text.tsx";

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

/** Gives the focus to the prompt when the card that has it is answered. */
function useFocusAfter() {
  const card = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const { current } = card;
    return () => {
      if (current?.contains(document.activeElement)) document.getElementById("prompt")?.focus();
    };
  }, []);
  return card;
}

function ApprovalCard({ state, question }: { state: AppState; question: Question }) {
  const card = useFocusAfter();
  const [reason, setReason] = useState("");
  const { tool_name, tool_input, preview, prompt, options, expires_at } = question;
  const input = asText(tool_input ?? {});
  return (
    <form
      ref={card}
      class="question"
      aria-label={prompt}
      onSubmit={(event) => event.preventDefault()}
    >
      <div class="row">
        <strong dir="auto">{sideOf(state, question)}{visible(prompt)}</strong>
        <span class="spread" />
        <span class="waiting">
          ◷ expires in <Countdown to={expires_at} />
        </span>
      </div>
      {preview && <TextBlock text={preview} label={`What ${tool_name} would do`} diff={isDiff(preview)} />}
      {(!preview || tool_input) && (
        preview
          ? (
            <details>
              <summary class="muted">exact input</summary>
              <TextBlock text={input} label="Exact input" />
            </details>
          )
          : <TextBlock text={input} label="Exact input" />
      )}
      <div class="row wrap">
        {options.map((option, index) => {
          const label = typeof option === "string" ? option : option.label;
          const denies = typeof option === "string" ? /^(deny|no)\b/i.test(option) : option.effect === "deny";
          return (
            <button
              type="button"
              class={index === 0 ? "primary" : undefined}
              onClick={() => state.answer(question, label, denies ? reason : undefined)}
              key={label}
            >
              {label}
            </button>
          );
        })}
        <input
          class="spread"
          aria-label="Reason, if you deny"
          placeholder="reason, if you deny: the model reads it"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </div>
    </form>
  );
}

function LimitCard({ state, question, limit }: {
  state: AppState;
  question: Question;
  limit: NonNullable<Question["limit"]>;
}) {
  const card = useFocusAfter();
  const [value, setValue] = useState(String(Number(limit.value) * 2));
  return (
    <form
      ref={card}
      class="question"
      aria-label={question.prompt}
      onSubmit={(event) => {
        event.preventDefault();
        state.raiseLimit(question.run_id, limit.name, value);
      }}
    >
      <div class="row">
        <strong dir="auto">{sideOf(state, question)}{visible(question.prompt)}</strong>
        <span class="spread" />
        <span class="waiting">
          ◷ expires in <Countdown to={question.expires_at} />
        </span>
      </div>
      <div class="row wrap">
        <label class="row">
          new limit
          <input
            inputMode="decimal"
            size={10}
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">Raise the limit</button>
        <button type="button" onClick={() => state.answer(question, "deny")}>Stop here</button>
      </div>
    </form>
  );
}
