/** A conversation in the terminal: each message is a run of one session. */
import type { Approval, Run, RunRequest } from "../../runs/types.ts";
import { errorCode, errorMessage, hasCode, type PreampError } from "../../sdk/errors.ts";
import { TERMINAL } from "../commands.ts";
import { EXIT, exitOfStatus } from "../errors.ts";
import { StopKey } from "../terminal/stop_key.ts";
import { messageText } from "../terminal/progress_lines.ts";
import type { ChatOptions, ChatPlan, Conversation } from "./conversation.ts";
import { type Ask, questionsOf } from "../terminal/questions.ts";
import { isCommand, runSlashCommand } from "./slash_commands.ts";

/** Characters of a message that name its session. */
const MAX_NAME = 60;

/** A conversation until the person leaves it. */
export class Chat implements Conversation {
  readonly options: ChatOptions;
  plan: ChatPlan;
  session_id: string | null;
  /** The last run; null before the first. */
  last_run: Run | null = null;
  /** Messages that wait for their turn. */
  readonly #waiting: string[];
  #current: { id: string | null; stop_key: StopKey; is_stopped: boolean } | null = null;
  /** Times that Ctrl-C was pressed at an empty input line. */
  #interrupts = 0;
  #is_leaving = false;
  /** Whether the person left during an answer. */
  #is_interrupted = false;

  constructor(options: ChatOptions) {
    this.options = options;
    this.plan = options.plan;
    this.session_id = options.session_id;
    this.#waiting = [...options.first_messages ?? []];
  }

  /** Runs the conversation. Resolves to the exit code. */
  async run(): Promise<number> {
    const { io, input, view } = this.options;
    const unlisten = io.onStop(() => {
      view.interrupted();
      this.#interrupt();
    });
    try {
      while (!this.#is_leaving) {
        const waiting = this.#waiting.shift();
        if (waiting !== undefined) {
          io.out.write(input.asks ? `${view.style.bold(">")} ${messageText(waiting)}\n` : "");
        }
        const typed = waiting === undefined ? await input.read() : { text: waiting };
        if (typed === "end") return this.#exitCode();
        if (typed === "interrupt") this.#interruptInput();
        else if (typed.text.trim() !== "") await this.#take(typed.text.trim());
      }
      return this.#is_interrupted ? EXIT.interrupted : this.#exitCode();
    } finally {
      unlisten();
    }
  }

  /** Returns the exit code: in a pipe that of the last run. */
  #exitCode(): number {
    const run = this.last_run;
    if (run === null || this.options.input.asks) return EXIT.done;
    const is_denied = run.approvals.some(({ decision }) => decision === "unanswered");
    return is_denied ? EXIT.refused : exitOfStatus(run.status);
  }

  async #take(text: string): Promise<void> {
    const { view } = this.options;
    this.#interrupts = 0;
    try {
      if (isCommand(text)) await runSlashCommand(text, this);
      else await this.send(text);
    } catch (error) {
      if (errorCode(error) === undefined) throw error; // a bug
      const { details = [] } = error as Partial<PreampError>; // identified by its code
      if (details.length === 0) view.error(errorMessage(error));
      for (const { message, hint } of details) {
        view.error(hint === undefined ? message : `${message}: ${hint}`);
      }
    }
  }

  /** Ends the conversation after what is running. */
  leave(): void {
    this.#is_leaving = true;
  }

  continueIn(session_id: string, plan: ChatPlan = {}): void {
    this.session_id = session_id;
    this.last_run = null;
    this.plan = plan;
  }

  async begin(): Promise<boolean> {
    const plan = await this.options.newPlan();
    if (plan === null) return false;
    this.plan = plan;
    this.session_id = this.last_run = null;
    return true;
  }

  /** Sends a message and displays its run. */
  async send(text: string): Promise<void> {
    const { input, runtime, view } = this.options;
    const current = this.#current = { id: null as string | null, stop_key: new StopKey(), is_stopped: false };
    const { base_url, ...plan } = this.plan;
    const is_new = this.session_id === null;
    const request: RunRequest = {
      prompt: text,
      ...plan,
      ...(this.session_id === null ? { metadata: { name: this.options.session_name ?? nameOf(text) } } : {
        session_id: this.session_id,
      }),
    };
    const ask = input.asks ? this.#questions() : (approval: Approval) => {
      if (!approval.limit) view.warn("No one can be asked here: calls that need an approval are denied");
      return Promise.resolve(null);
    };
    let unlisten = () => {};
    try {
      const handle = await runtime.runs.create(request, TERMINAL, {
        ask,
        endNotStored: () =>
          view.warn("The answer has ended and is not stored yet: the store fails; Ctrl-C leaves"),
        ...(base_url === undefined ? {} : { base_url }),
      });
      current.id = handle.id;
      for (const { message } of handle.current().warnings) view.warn(message);
      if (is_new) this.session_id = handle.session_id;
      if (current.is_stopped) await runtime.runs.cancel(TERMINAL, handle.id, "immediate");
      unlisten = input.listen((line) => void this.#steer(handle.id, line));
      for await (const entries of runtime.runs.follow(TERMINAL, handle.id, {})) {
        for (const entry of entries) {
          current.stop_key.take(entry);
          view.entry(entry);
        }
      }
      this.last_run = await handle.settled("end");
      view.end(this.last_run);
    } finally {
      unlisten();
      this.#current = null;
    }
  }

  #questions(): Ask {
    const { io, input, view } = this.options;
    return questionsOf({
      io,
      input,
      output: io.out,
      style: view.style,
      hold: () => view.hold(),
      leave: () => this.#interrupt(),
      displayed: ({ session_id, tool_call_id }) => view.know(session_id, tool_call_id),
    });
  }

  /** Sends a line that was typed while the agent works; one that cannot be read in this run waits. */
  async #steer(run_id: string, line: string): Promise<void> {
    const { runtime, view } = this.options;
    if (line.trim() === "") return;
    if (isCommand(line)) {
      this.#waiting.push(line.trim());
      return view.note(view.style.dim("↪ after this answer"));
    }
    try {
      await runtime.runs.steer(TERMINAL, run_id, line.trim());
    } catch (error) {
      if (!hasCode(error, "run_ended") && !hasCode(error, "not_steerable")) {
        return view.error(errorMessage(error));
      }
      this.#waiting.push(line.trim());
      if (hasCode(error, "not_steerable")) {
        view.note(view.style.dim("↪ after this answer: its loop takes no messages"));
      }
    }
  }

  /** Ctrl-C: stops the answer; pressed again, leaves. */
  #interrupt(): void {
    const { io, runtime, view } = this.options;
    const current = this.#current;
    if (current === null || this.#is_leaving) return io.exit(EXIT.interrupted);
    const stop = current.stop_key.press();
    if (stop === null || current.is_stopped) this.#is_leaving = this.#is_interrupted = true;
    current.is_stopped = true;
    const { style } = view;
    if (this.#is_leaving) view.note(style.dim("Leaving; press Ctrl-C again to end the process."));
    else if (stop?.mode === "graceful") {
      view.note(style.dim("Stopping after this tool; press Ctrl-C again to leave."));
    }
    if (current.id === null) return; // it is stopped when it exists
    runtime.runs.cancel(TERMINAL, current.id, stop?.mode ?? "immediate").catch((error) =>
      view.error(errorMessage(error))
    );
  }

  #interruptInput(): void {
    if (this.#interrupts++ > 0) this.leave();
    else this.options.view.note(this.options.view.style.dim("Press Ctrl-C again to leave."));
  }
}

function nameOf(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= MAX_NAME ? line : `${line.slice(0, MAX_NAME - 1)}…`;
}
