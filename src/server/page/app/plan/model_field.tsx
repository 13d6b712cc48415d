/** The model of the next run: typed, or chosen by the operator from those that can run on the server. */
import type { AppState } from "../state/app_state.ts";
import { wordsOf } from "../state/palette.ts";
import type { UsableModel, UsableModels } from "../state/plan_draft.ts";
import { Button } from "../ui/button.tsx";
import { visible } from "../ui/text.tsx";
import { tokens } from "../ui/units.ts";

/** Id of the field. */
const MODEL_FIELD = "model";

/** Shows the field with the focus, and to the operator the models. */
export function useModel(state: AppState): void {
  state.pane.value = "plan";
  state.plan_folded.value = false;
  state.lists_models.value = state.plan.is_owner.value;
  requestAnimationFrame(() => document.getElementById(MODEL_FIELD)?.focus());
}

/** The field, with a list of models below it. */
export function ModelField({ state }: { state: AppState }) {
  const { plan } = state;
  const is_owner = plan.is_owner.value;
  const usable = plan.usable.value;
  const open = state.lists_models.value;
  const setOpen = (shown: boolean) => state.lists_models.value = shown;
  const typed = plan.model.value.trim();
  const chosen = usable?.data.find(({ model }) => model === typed);
  const load = () => is_owner && state.attempt(() => plan.loadModels());
  const show = (shown: boolean) => {
    if (shown) load();
    setOpen(shown);
  };
  const choose = (model: string) => {
    plan.setModel(model);
    setOpen(false);
    document.getElementById(MODEL_FIELD)?.focus();
  };
  return (
    <div
      class="model"
      onKeyDown={(event) => {
        if (!is_owner || event.key !== (open ? "Escape" : "ArrowDown")) return;
        event.preventDefault();
        event.stopPropagation();
        show(!open);
      }}
    >
      <div class="row">
        <label class="row spread">
          model
          <input
            id={MODEL_FIELD}
            class="spread"
            placeholder="the plan's own, or vendor/model"
            autocomplete="off"
            spellcheck={false}
            value={plan.model.value}
            onFocus={load}
            onInput={(event) => plan.setModel(event.currentTarget.value)}
          />
        </label>
        {is_owner && (
          <Button
            aria-expanded={open}
            aria-controls="models"
            onFocus={load}
            onClick={() => show(!open)}
          >
            Models
          </Button>
        )}
      </div>
      {chosen && !open && <p class="muted">{visible(chosen.display_name)}: {factsOf(chosen)}</p>}
      <div id="models">
        {open && <Models usable={usable} typed={chosen ? "" : typed} chosen={typed} choose={choose} />}
      </div>
    </div>
  );
}

function Models({ usable, typed, chosen, choose }: {
  usable: UsableModels | null;
  /** Words that the models must have. */
  typed: string;
  chosen: string;
  choose: (model: string) => void;
}) {
  if (usable === null) return <p class="muted" role="status">looking for models …</p>;
  const words = wordsOf(typed);
  const fitting = usable.data.filter(({ model, display_name }) =>
    words.every((word) => `${model} ${display_name}`.toLowerCase().includes(word))
  );
  return (
    <>
      <ul class="models" aria-label="Models">
        {chosen !== "" && (
          <li>
            <Button plain onClick={() => choose("")}>the plan's own</Button>
          </li>
        )}
        {fitting.map((info) => (
          <li key={info.model}>
            <Button plain aria-pressed={info.model === chosen} onClick={() => choose(info.model)}>
              <span>{visible(info.model)}</span>
              <span class="muted">{factsOf(info)}</span>
            </Button>
          </li>
        ))}
      </ul>
      {usable.data.length === 0
        ? (
          <p class="waiting">
            No model can run here: set a key such as ANTHROPIC_API_KEY for the server, or start Ollama.
          </p>
        )
        : fitting.length === 0 && <p class="muted">No listed model has these words; it is used as typed.</p>}
      {usable.errors.length > 0 && (
        <details class="muted">
          <summary>{usable.errors.map(({ provider }) => provider).join(", ")}: no answer</summary>
          {usable.errors.map(({ message, provider }) => <p key={provider}>{visible(message)}</p>)}
        </details>
      )}
    </>
  );
}

/** Price and window, as far as they are known. */
function factsOf({ pricing, context_window }: UsableModel): string {
  const price = (amount: number) =>
    pricing!.currency === "USD" ? `$${amount}` : `${amount} ${pricing!.currency}`;
  return [
    pricing
      ? `${price(pricing.input_per_million)} in, ${price(pricing.output_per_million)} out per M tokens`
      : "price unknown",
    ...context_window > 0 ? [`window ${tokens(context_window)}`] : [],
  ].join(" · ");
}
