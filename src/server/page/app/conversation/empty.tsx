/** What the middle shows before a conversation: examples on a first visit, earlier conversations later. */
import { useModel } from "../plan/model_field.tsx";
import type { AppState } from "../state/app_state.ts";
import { nameOf } from "../state/history.ts";
import { Button } from "../ui/button.tsx";
import { Ago } from "../ui/facts.tsx";
import { visible } from "../ui/text.tsx";
import { EXAMPLES } from "./examples.ts";

/** The empty conversation. */
export function Empty({ state }: { state: AppState }) {
  const { plan, recent: { value: recent } } = state;
  const is_demo = plan.name.value === "demo" && !plan.is_changed.value;
  return (
    <div class="start">
      <p class="muted">
        {is_demo
          ? "The demo plan costs nothing and needs no key: its model is scripted. It asks before the calculator " +
            "runs. Press Run, or change the plan first."
          : "Type a prompt and press Run. The plan decides which model answers, and what its tools may touch."}
      </p>
      <p>
        <Button onClick={() => useModel(state)}>Use my model</Button>
      </p>
      {recent?.length === 0 && plan.is_untouched.value && (
        <>
          <h3>Examples, on a scripted model: one click runs them</h3>
          <ul class="history" aria-label="Examples">
            {EXAMPLES.map((example) => (
              <li key={example.prompt}>
                <Button class="plain title" onClick={() => state.runExample(example)}>
                  {example.prompt}
                </Button>
                <span class="muted">{example.shows}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {recent !== null && recent.length > 0 && (
        <>
          <h3>Earlier conversations</h3>
          <ul class="history" aria-label="Earlier conversations">
            {recent.map((session) => (
              <li key={session.id}>
                <Button
                  class="plain title"
                  dir="auto"
                  onClick={() => state.attempt(() => state.openSession(session.id))}
                >
                  {visible(nameOf(session))}
                </Button>
                <span class="muted">
                  <Ago time={session.last_activity} />
                </span>
              </li>
            ))}
          </ul>
          <Button plain onClick={() => state.overlay.value = "history"}>all of them</Button>
        </>
      )}
    </div>
  );
}
