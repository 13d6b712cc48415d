/** What the plan may touch, module by module. */
import type { ExplainedModule, Explanation, PlanDraft } from "../state/plan_draft.ts";
import { visible } from "../ui/text.tsx";
import { limitsText, refusedTo, touchedBy } from "./words.ts";

/** The table of modules, with limits, variables and what to look at. */
export function Explained({ plan }: { plan: PlanDraft }) {
  const explanation = plan.explanation.value;
  return (
    <section class="drawer" aria-label="What the plan may touch" tabIndex={0}>
      {explanation && plan.phase.value === "invalid" && (
        <p class="waiting">! Of the last text that was valid.</p>
      )}
      {explanation ? <Facts explanation={explanation} /> : (
        <p class="muted">
          {plan.is_kept.value
            ? "The plan of a run is not explained again: choose a plan by its name."
            : "Known once the plan is valid."}
        </p>
      )}
    </section>
  );
}

function Facts({ explanation: { modules, env, limits, red_flags, warnings } }: { explanation: Explanation }) {
  const flags = [...red_flags, ...warnings];
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">module</th>
            <th scope="col">may</th>
          </tr>
        </thead>
        <tbody>
          {modules.map((module) => <ModuleRow module={module} key={module.path} />)}
        </tbody>
      </table>
      <dl>
        <dt>limits</dt>
        <dd>{visible(limitsText(limits))}</dd>
        <dt>variables</dt>
        <dd>{env.length === 0 ? "none" : visible(env.join(", "))}</dd>
      </dl>
      {flags.length > 0 && (
        <>
          <h2>Look at</h2>
          <ul>
            {flags.map(({ code, message, path }) => (
              <li key={`${code} ${path} ${message}`}>
                <span class="waiting">!</span> {visible(message)}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function ModuleRow({ module }: { module: ExplainedModule }) {
  const touched = touchedBy(module);
  const refused = refusedTo(module);
  return (
    <tr>
      <th scope="row" title={module.description ?? undefined}>
        {visible(module.module)}
        <div class="muted">
          {module.type}, {module.isolation === "inline" ? "in the server" : "in a sandbox"}
          {module.url && <>, from {visible(module.url)}</>}
        </div>
      </th>
      <td>
        {touched.length === 0 && <span class="muted">touch nothing outside</span>}
        {touched.map((line) => <div key={line}>{visible(line)}</div>)}
        {refused.map((line) => <div class="failed" key={line}>✗ not {visible(line)}: refused</div>)}
      </td>
    </tr>
  );
}
