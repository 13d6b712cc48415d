/** A terminal in memory, on which the screen of a conversation is drawn and typed. */
import type { Terminal } from "@earendil-works/pi-tui";
import xterm from "@xterm/headless";

/** A terminal that keeps what is drawn, and all that was written to it. */
export class VirtualTerminal implements Terminal {
  /** All that was written. */
  written = "";
  #input: (data: string) => void = () => {};
  readonly kittyProtocolActive = false;
  readonly #xterm: InstanceType<typeof xterm.Terminal>;
  #resized: () => void = () => {};

  constructor(cols: number, rows: number) {
    this.#xterm = new xterm.Terminal({ cols, rows, allowProposedApi: true, scrollback: 10_000 });
  }

  /** Types keys, one after the other; a paste is one. */
  type(keys: string): void {
    // deno-lint-ignore no-control-regex -- keys are control sequences
    for (const key of keys.match(/\x1b\[200~[^]*?\x1b\[201~|\x1b\[[\d;]*[A-Za-z~]|[^]/gu) ?? []) {
      this.#input(key);
    }
  }

  start(input: (data: string) => void, resized: () => void): void {
    this.#input = input;
    this.#resized = resized;
  }
  stop(): void {}
  drainInput(): Promise<void> {
    return Promise.resolve();
  }
  write(data: string): void {
    this.written += data;
    this.#xterm.write(data);
  }
  get columns(): number {
    return this.#xterm.cols;
  }
  get rows(): number {
    return this.#xterm.rows;
  }
  moveBy(lines: number): void {
    if (lines !== 0) this.write(lines > 0 ? `\x1b[${lines}B` : `\x1b[${-lines}A`);
  }
  hideCursor(): void {
    this.write("\x1b[?25l");
  }
  showCursor(): void {
    this.write("\x1b[?25h");
  }
  clearLine(): void {
    this.write("\x1b[K");
  }
  clearFromCursor(): void {
    this.write("\x1b[J");
  }
  clearScreen(): void {
    this.write("\x1b[2J\x1b[H");
  }
  setTitle(): void {}
  setProgress(): void {}
  setProgramStatus(): void {}

  /** Changes the size, as a person who drags the window. */
  resize(cols: number, rows: number): void {
    this.#xterm.resize(cols, rows);
    this.#resized();
  }

  /** Resolves to all lines: those that have scrolled away, and those of the window. */
  async lines(): Promise<string[]> {
    await new Promise<void>((done) => this.#xterm.write("", done));
    const { active } = this.#xterm.buffer;
    return Array.from(
      { length: active.length },
      (_, at) => active.getLine(at)?.translateToString(true) ?? "",
    );
  }

  /** Resolves to the lines of the window. */
  async window(): Promise<string[]> {
    return (await this.lines()).slice(-this.rows);
  }
}
