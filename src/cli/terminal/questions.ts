/** Asks a person about the calls that need an approval. */
import type { Approval, CreateOptions } from "../../runs/types.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { Style } from "./format.ts";
import type { Io, Output } from "./io.ts";
import { duration, formatValue } from "./progress_lines.ts";
import type { Choice, PersonInput } from "./line_input.ts";
import { inputLines } from "./tool_lines.ts";

/** Milliseconds. A faster answer was typed before the question was displayed, and is ignored. */
const TYPED_AHEAD_MS = 250;

/** Milliseconds. A question that ends sooner says so. */
const SHOWN_BELOW_MS = 3_600_000;

/** Decisions with a meaning of their own; every other option of a question is offered with its label. */
const PLAIN: ReadonlySet<string> = new Set(["allow", "allow once", "deny"]);

/** What a person may answer. */
type Answer = "once" | "run" | "deny" | { readonly option: string };

/** Decides approvals; see {@link CreateOptions}. */
export type Ask = NonNullable<CreateOptions["ask"]>;

/** Collaborators of {@link questionsOf}. */
export interface QuestionsDeps {
  readonly io: Pick<Io, "monotonic">;
  readonly input: PersonInput;
  /** Where questions are displayed. */
  readonly output: Output;
  readonly style: Style;
  /** Keeps all other text back until the returned function is called. */
  hold(): () => void;
  /** Called when the person leaves a question, which stops the run. Default: the question is not answered. */
  leave?(): void;
  /** Called with an approval whose call is displayed whole. */
  displayed?(approval: Approval): void;
  /** Returns milliseconds since the epoch. Default: the system's clock. */
  now?(): number;
}

/**
 * Returns the function that answers the approvals of one run, one question at a time. Without a person it
 * resolves to null: the call is denied.
 */
export function questionsOf(deps: QuestionsDeps): Ask {
  if (!deps.input.asks) return () => Promise.resolve(null);
  const allowed = new Set<string>();
  let previous: Promise<unknown> = Promise.resolve();
  return (approval, signal) => {
    const answer = previous.then(async () => {
      if (signal.aborted) return null;
      if (allowed.has(kindOf(approval))) return { decision: "allow", reason: "allowed for this run" };
      const decision = await askOne(approval, signal, deps);
      if (decision === "run") allowed.add(kindOf(approval));
      return decision === "run" ? { decision: "allow" } : decision;
    });
    previous = answer.catch(() => {}); // the caller handles a rejection
    return answer;
  };
}

/**
 * Returns what an answer for the run holds for: calls of the same tool, or the same command, because a tool
 * that runs commands can do anything.
 */
function kindOf({ tool_name, action, hook_name, args_hash, tool_input }: Approval): string {
  const is_command = tool_input !== null && "command" in tool_input;
  return JSON.stringify([hook_name, action, tool_name, is_command || tool_name === null ? args_hash : null]);
}

async function askOne(
  approval: Approval,
  signal: AbortSignal,
  { io, input, output, style, hold, leave, displayed, now = Date.now }: QuestionsDeps,
): Promise<{ decision: string; reason?: string } | "run" | null> {
  const release = hold();
  try {
    displayed?.(approval);
    output.write(questionText(approval, style, now()));
    const choices = choicesOf(approval);
    while (true) {
      const since = io.monotonic();
      const answer = await input.choose(approval.limit ? "Go further?" : "Allow it?", choices, signal);
      if (signal.aborted) return null;
      if (answer !== null && io.monotonic() - since < TYPED_AHEAD_MS) {
        output.write("This answer was typed before the question was displayed. Please answer again.\n");
        continue;
      }
      if (answer === null) {
        leave?.();
        return leave ? { decision: "deny" } : null;
      }
      if (answer === "run") return "run";
      if (answer === "once") return { decision: "allow" };
      if (answer !== "deny") return { decision: answer.option };
      if (approval.limit) return { decision: "deny" };
      const reason = await input.line("Why not? The agent reads it (Enter: no reason)", signal);
      if (signal.aborted) return null;
      return reason?.trim() ? { decision: "deny", reason: reason.trim() } : { decision: "deny" };
    }
  } finally {
    release();
  }
}

function choicesOf(approval: Approval): Choice<Answer>[] {
  const { tool_name, tool_input, limit } = approval;
  if (limit) {
    return [
      { value: "once", label: `Raise ${limit.name} by as much again`, letter: "y" },
      { value: "deny", label: "Stop here", letter: "n" },
    ];
  }
  const kind = tool_name === null
    ? "this step"
    : tool_input !== null && "command" in tool_input
    ? "exactly this command"
    : formatValue(tool_name);
  const offered = approval.options
    .map((option) => typeof option === "string" ? option : option.label)
    .filter((label) => !PLAIN.has(label.toLowerCase()));
  return [
    { value: "once", label: "Allow once", letter: "y" },
    { value: "run", label: `Allow ${kind} until this answer ends` },
    ...offered.map((option) => ({ value: { option }, label: formatValue(option) })),
    { value: "deny", label: "Deny, with a reason", letter: "n" },
  ];
}

/** Returns the text of a question, with every unprintable character escaped. */
function questionText(approval: Approval, style: Style, now: number): string {
  const { action, prompt, tool_name, tool_input, risk_level, hook_name, expires_at, pattern } = approval;
  const question = prompt.split("\n").map(escapeUnprintable).join("\n  ");
  const left_ms = Date.parse(expires_at) - now;
  const facts = [
    ...(prompt === `Allow ${tool_name}?` ? [] : [formatValue(tool_name ?? action)]),
    `risk ${formatValue(risk_level)}`,
    `asked by ${formatValue(hook_name ?? "the runtime")}`,
    ...(pattern === undefined ? [] : [`also for ${formatValue(pattern)}`]),
    ...(left_ms > SHOWN_BELOW_MS ? [] : [
      `${approval.default === "allow" ? "allowed" : "denied"} in ${
        duration(Math.max(0, left_ms))
      } if unanswered`,
    ]),
  ];
  const lines = inputLines(tool_input, style).map((line) => `  ${line}\n`);
  return `${style.yellow("?")} ${style.bold(question)} ${style.dim(facts.join(", "))}\n${lines.join("")}`;
}
