/** Two runs side by side: the change of the plan, what each did call by call, and the first difference. */
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useRows } from "../conversation/items.tsx";
import { Questions } from "../conversation/questions.tsx";
import type { AppState } from "../state/app_state.ts";
import type { Comparison, PlanDifference } from "../state/comparison.ts";
import { hasEnded } from "preamp/client";
import type { RunView } from "../state/run_view.ts";
import { Button } from "../ui/button.tsx";
import { Copy, Elapsed, Status } from "../ui/facts.tsx";
import { dollars, tokens } from "../ui/units.ts";
import { ChangeLists } from "../plan/changes.tsx";
import { TextBlock, visible } from "../ui/text.tsx";

/** The comparison, in place of plan and conversation. */
export function Compare({ state, compared }: { state: AppState; compared: Comparison }) {
  const { left, right } = compared;
  const fork = compared.fork.value;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [compared]);
  return (
    <>
      <header class="wrap">
        <h2>Side by side</h2>
        <span class="muted">
          {fork === null ? "" : `B continues after entry ${fork} of A; its totals begin there`}
        </span>
        <span class="spread" />
        <Copy text={() => location.href} label="copy link" />
        {fork !== null && (
          <Button onClick={() => state.beginWhatIf(left, fork, compared.plans.value?.text)}>
            Change the plan again
          </Button>
        )}
        <Button onClick={() => state.attempt(() => state.openRun(left.id))}>Back</Button>
      </header>
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="Two runs side by side">
        <Plans plans={compared.plans.value} />
        <Verdict compared={compared} />
        <div class="sides heads">
          <Side state={state} view={left} name="A" />
          <Side state={state} view={right} name="B" />
        </div>
        <Steps compared={compared} />
      </div>
      <Questions state={state} />
    </>
  );
}

function Plans({ plans }: { plans: PlanDifference | null }) {
  if (plans === null) return <p class="compare-part muted">comparing the plans …</p>;
  if (plans.lines === "") return <p class="compare-part">= The plans are the same.</p>;
  const { changes } = plans;
  const is_said = changes !== null &&
    changes.widens.length + changes.narrows.length + changes.other.length > 0;
  return (
    <details class="compare-part" open>
      <summary>≠ The plan of B has changes</summary>
      {changes && <ChangeLists changes={changes} />}
      <details open={!is_said}>
        <summary class="muted">as lines</summary>
        <TextBlock text={plans.lines} label="Changed lines of the plan" diff />
      </details>
    </details>
  );
}

function Verdict({ compared }: { compared: Comparison }) {
  const { difference, ended, steps } = compared.aligned.value;
  if (steps.length === 0) return <p class="compare-part muted">loading …</p>;
  return (
    <p class="compare-part" role="status">
      {difference === null
        ? (
          <strong class={ended ? "done" : undefined}>
            {ended ? "= B does the same as A." : "= The same so far."}
          </strong>
        )
        : (
          <>
            <strong class="waiting">≠ First difference:</strong>{" "}
            <span dir="auto">{visible(difference.message)}</span>{" "}
            {difference.step !== null && <Button plain onClick={showDifference}>show</Button>}
          </>
        )}
    </p>
  );
}

function showDifference() {
  document.querySelector(".differs")?.scrollIntoView({ block: "center" });
}

function Side({ state, view, name }: { state: AppState; view: RunView; name: string }) {
  const run = view.run.value;
  const status = view.status.value;
  const selected = state.current.value === view;
  return (
    <section class={selected ? "side selected" : "side"} aria-label={`Run ${name}`}>
      <strong>{name}</strong>
      <Status status={status} />
      {view.started.value && (
        <span title="duration">
          <Elapsed from={view.started.value} to={view.ended.value} />
        </span>
      )}
      {run && <span title="tokens in all calls">{tokens(run.usage.total_tokens)} tokens</span>}
      {run && (
        <span title="cost">{run.usage.cost_usd === null ? "no price" : dollars(run.usage.cost_usd)}</span>
      )}
      <span class="spread" />
      {!hasEnded(status) && <Button plain onClick={() => state.stop(view)}>stop ■</Button>}
      <Button
        plain
        aria-pressed={selected}
        onClick={() => {
          state.current.value = view;
          state.selected_seq.value = null;
          state.pane.value = "log";
        }}
      >
        log
      </Button>
      <Button plain onClick={() => state.attempt(() => state.openRun(view.id))}>open</Button>
    </section>
  );
}

function Steps({ compared }: { compared: Comparison }) {
  const { before, steps, difference } = compared.aligned.value;
  const rowOf = useRows(compared, null);
  return (
    <>
      {before.length > 0 && (
        <details class="compare-part">
          <summary>the same beginning: {before.length} {before.length === 1 ? "part" : "parts"}</summary>
          <div class="items">{before.map(rowOf)}</div>
        </details>
      )}
      {steps.map((step, index) => {
        if (step.left.length + step.right.length === 0) return null;
        const differs = difference?.step === index;
        return (
          <div class={differs ? "sides step differs" : "sides step"} key={index}>
            {differs && <p class="waiting">≠ first difference</p>}
            <Cell name="A" items={step.left.map(rowOf)} />
            <Cell name="B" items={step.right.map(rowOf)} />
          </div>
        );
      })}
    </>
  );
}

function Cell({ name, items }: { name: string; items: VNode[] }) {
  return (
    <div class="items" role="group" aria-label={name}>
      <span class="who side-name">{name}</span>
      {items}
      {items.length === 0 && <p class="muted">–</p>}
    </div>
  );
}
