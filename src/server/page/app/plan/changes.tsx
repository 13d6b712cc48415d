/** What the plan may do that it could not before, and what else changed. */
import type { AppState } from "../state/app_state.ts";
import type { PlanChange, PlanChanges } from "../state/plan_draft.ts";
import { Button } from "../ui/button.tsx";
import { visible } from "../ui/text.tsx";
import { planLabel } from "./words.ts";

/** Characters of a value that are shown. */
const SHOWN = 200;

/** The changes since the plan was loaded or last run. */
export function Changes({ state }: { state: AppState }) {
  const { plan } = state;
  const name = plan.name.value;
  const changes = plan.changes.value;
  const is_empty = changes && Object.values(changes).every((list) => list.length === 0);
  return (
    <section class="drawer" aria-label="What changed" tabIndex={0}>
      {!changes || is_empty
        ? (
          <p class="muted">
            {plan.text.value === plan.base.value || is_empty
              ? "Nothing changed since the plan was loaded or last run."
              : "Known once the plan is valid."}
          </p>
        )
        : <ChangeLists changes={changes} />}
      {name !== null && plan.is_changed.value && (
        <p>
          <Button onClick={() => state.attempt(() => plan.choose(name))}>
            Back to plan {planLabel(name)}
          </Button>{" "}
          <span class="muted">your text stays in the list of plans</span>
        </p>
      )}
    </section>
  );
}

/** What a change widens, narrows, and what else it changes. */
export function ChangeLists({ changes: { widens, narrows, other } }: { changes: PlanChanges }) {
  return (
    <>
      <ChangeList sign="▲" word="widens" style="failed" changes={widens} />
      <ChangeList sign="▼" word="narrows" style="done" changes={narrows} />
      <ChangeList sign="~" word="changes" style="muted" changes={other} />
    </>
  );
}

function ChangeList({ sign, word, style, changes }: {
  sign: string;
  word: string;
  style: string;
  changes: readonly PlanChange[];
}) {
  if (changes.length === 0) return null;
  return (
    <ul class="plan-changes" aria-label={word}>
      {changes.map(({ path, from, to, message }) => (
        <li key={`${path} ${message}`}>
          <span class={style}>{sign} {word}</span> {visible(message)}
          <div class="muted mono">
            {visible(path)}
            {from !== null && <span class="removed">- {value(from)}</span>}
            {to !== null && <span class="added">+ {value(to)}</span>}
          </div>
        </li>
      ))}
    </ul>
  );
}

function value(value: unknown) {
  const text = JSON.stringify(value);
  return visible(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
}
