/** The left: the plan of the next run, what is wrong with it, what it may touch, what changed. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import type { Finding, PlanDraft, ReviewPhase } from "../state/plan_draft.ts";
import { Button } from "../ui/button.tsx";
import { Copy } from "../ui/facts.tsx";
import { visible } from "../ui/text.tsx";
import { Changes } from "./changes.tsx";
import { curlText, typescriptText } from "./copy_as.ts";
import { hiddenIn } from "./editing.ts";
import { Editor, goTo } from "./editor.tsx";
import { Explained } from "./explained.tsx";
import { ModelField } from "./model_field.tsx";
import { planLabel, planSentence } from "./words.ts";

/** The plan pane. */
export function PlanPane({ state }: { state: AppState }) {
  const { plan } = state;
  const [drawer, setDrawer] = useState<"explain" | "diff" | null>(null);
  return (
    <>
      <header>
        <h2>Plan</h2>
        <PlanChoice state={state} />
        <span class="spread" />
        {(["explain", "diff"] as const).map((name) => (
          <Button
            aria-expanded={drawer === name}
            aria-controls="plan-drawer"
            onClick={() => setDrawer(drawer === name ? null : name)}
            key={name}
          >
            {name}
          </Button>
        ))}
      </header>
      <Editor state={state} />
      <div id="plan-drawer">
        {drawer === "explain" && <Explained plan={plan} />}
        {drawer === "diff" && <Changes state={state} />}
      </div>
      <div class="plan-foot">
        <Verdict plan={plan} openDiff={() => setDrawer("diff")} />
        <Findings plan={plan} />
        <ModelAndCopies state={state} />
      </div>
    </>
  );
}

/** The plans to choose from: those of the server, one's own, and changed ones that were left. */
function PlanChoice({ state }: { state: AppState }) {
  const { plan } = state;
  const name = plan.name.value;
  const names = plan.plans.value.map((plan) => plan.name);
  const unlisted = name !== null && !names.includes(name)
    ? [name]
    : names.includes("default")
    ? []
    : ["demo"];
  const drafts = Object.keys(plan.drafts.value).filter((draft) => draft !== "");
  const choose = (value: string) => {
    const [kind, ...rest] = value.split(":");
    const chosen = rest.join(":");
    state.attempt(() => plan.choose(kind === "own" ? null : chosen, kind === "draft"));
  };
  const changed = name !== null && plan.is_changed.value;
  return (
    <select
      aria-label="Plan"
      value={name === null ? "own" : `plan:${name}`}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <optgroup label="plans of the server">
        {[...unlisted, ...names].map((listed) => (
          <option value={`plan:${listed}`} key={listed}>
            {listed === name && changed ? `${planLabel(listed)}, changed` : planLabel(listed)}
          </option>
        ))}
      </optgroup>
      <optgroup label="yours">
        <option value="own">your own</option>
        {drafts.map((draft) => (
          <option value={`draft:${draft}`} key={draft}>{planLabel(draft)}, your changes</option>
        ))}
      </optgroup>
    </select>
  );
}

/** In one sentence, always there: is the plan valid, what may it touch, what does a change widen. */
function Verdict({ plan, openDiff }: { plan: PlanDraft; openDiff: () => void }) {
  const phase = plan.phase.value;
  const last = useRef(phase);
  if (phase !== "checking") last.current = phase; // while it is checked, the last verdict stays
  const [sign, style, words] = verdictOf(plan, last.current);
  const widens = plan.changes.value?.widens.length ?? 0;
  return (
    <>
      <p class={phase === "checking" ? "muted" : style === "failed" ? style : undefined}>
        <span class={style}>{phase === "checking" ? "…" : sign}</span> <span role="status">{words}</span>
      </p>
      {widens > 0 && (
        <p>
          <Button class="plain failed" onClick={openDiff}>
            ▲ {widens} {widens === 1 ? "change widens" : "changes widen"} what it may do
          </Button>
        </p>
      )}
    </>
  );
}

function verdictOf(
  plan: PlanDraft,
  phase: ReviewPhase,
): [sign: string, style: string, words: ComponentChildren] {
  const explanation = plan.explanation.value;
  const errors = plan.findings.value.filter(({ level }) => level === "error").length;
  if (phase === "unreachable") return ["!", "waiting", "not checked: the server does not answer"];
  if (errors > 0) {
    return ["✗", "failed", `${errors} ${errors === 1 ? "error" : "errors"}: this plan would be refused`];
  }
  if (explanation) return ["✓", "done", visible(planSentence(explanation))];
  if (plan.is_kept.value) {
    return ["✓", "done", "The plan of the server, as this run had it. A changed text has a caller's rights."];
  }
  return phase === "valid" && plan.text.value.trim() === ""
    ? ["○", "muted", "No plan: a run uses the one of its conversation, or else the server's own."]
    : ["…", "muted", "checking"];
}

/** The findings; one with a line puts the cursor there. */
function Findings({ plan }: { plan: PlanDraft }) {
  const findings = [...plan.findings.value, ...hiddenIn(plan.text.value)]
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  if (findings.length === 0) return null;
  return (
    <ul id="plan-findings" class="findings" aria-label="Findings">
      {findings.map((finding, index) => (
        <li key={index}>
          {finding.line === undefined
            ? <FindingText finding={finding} />
            : (
              <Button plain onClick={() => goTo(finding.line!, finding.column)}>
                <FindingText finding={finding} />
              </Button>
            )}
        </li>
      ))}
    </ul>
  );
}

function FindingText({ finding: { level, line, path, message, hint } }: { finding: Finding }) {
  return (
    <>
      <span class={level === "error" ? "failed" : "waiting"}>{level === "error" ? "✗" : "!"} {level}</span>
      {" "}
      {line !== undefined && <span class="muted at">line {line}</span>}{" "}
      {path !== "" && <code>{visible(path)}</code>} <span>{visible(message)}</span>{" "}
      {hint && <span class="muted">{visible(hint)}</span>}
    </>
  );
}

/** Saves the text under a name: from then on it is a plan of the server. */
function SavePlan({ state }: { state: AppState }) {
  const { plan } = state;
  const [name, setName] = useState<string | null>(null);
  const current = plan.plan_ref;
  if (name === null) {
    return (
      <div class="row">
        <Button onClick={() => setName(current ?? "")}>Save…</Button>
        <span class="muted">A saved plan has your rights; a text that you only run has a caller's.</span>
      </div>
    );
  }
  const save = async () => {
    if (await state.attempt(() => plan.save(name.trim()))) setName(null);
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <label class="row spread">
        save as
        <input
          class="spread"
          placeholder="a name"
          autocomplete="off"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={name.trim() === ""}>Save</button>
      <Button onClick={() => setName(null)}>Close</Button>
    </form>
  );
}

function ModelAndCopies({ state }: { state: AppState }) {
  const { plan } = state;
  const current = state.current.value;
  const copied = () => {
    const last = current?.thread.value?.items.find((item) => item.kind === "prompt");
    const prompt = state.prompt.value || (last?.kind === "prompt" ? last.text : "");
    return { url: state.url, body: { prompt, ...plan.choice(false) }, needs_key: state.has_key };
  };
  return (
    <>
      <ModelField state={state} />
      {plan.is_owner.value && (
        <label class="row">
          workspace
          <input
            class="spread"
            placeholder="the server's folder, or an absolute path"
            autocomplete="off"
            spellcheck={false}
            value={plan.workspace.value}
            onInput={(event) => plan.setWorkspace(event.currentTarget.value)}
          />
        </label>
      )}
      {plan.is_owner.value && plan.text.value.trim() !== "" && <SavePlan state={state} />}
      {plan.model.value !== "" && !plan.is_changed.value && plan.name.value !== null &&
        !plan.is_owner.value && (
        <p class="muted">
          Only the operator chooses the model of a plan on the server: the run gets a copy of its text.
        </p>
      )}
      <div class="row wrap" role="group" aria-label="Copy as">
        <span class="muted">copy as</span>
        <Copy text={() => plan.text.value} label="plan" />
        <Copy text={() => curlText(copied())} label="curl" />
        <Copy text={() => typescriptText(copied())} label="TypeScript" />
        {current && <Copy text={() => new URL(`#/runs/${current.id}`, state.url).href} label="link" />}
      </div>
    </>
  );
}
