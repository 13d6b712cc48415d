/**
 * The editor of the plan: a text area whose lines wrap. The same text lies behind it, invisible and line by
 * line, so that numbers and marks are where the lines are.
 */
import { useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { visible } from "../ui/text.tsx";
import { type Edit, hiddenIn, indent, lineAt, marksOf, newLine, offsetOf } from "./editing.ts";

const ID = "plan-text";

/** Puts the cursor at a line and column of the plan. */
export function goTo(line: number, column?: number): void {
  const box = document.getElementById(ID) as HTMLTextAreaElement;
  const at = offsetOf(box.value, line, column);
  box.setSelectionRange(at, at);
  box.focus(); // shows the findings of the line of the cursor
  const scroll = box.closest(".scroll")!;
  const place = scroll.querySelectorAll<HTMLElement>(".lines > div")[line - 1]?.offsetTop ?? 0;
  scroll.scrollTop = Math.max(0, place - 3 * LINE_PX);
}

/** Height of a line that does not wrap; the style sheet has the same. */
const LINE_PX = 18;

/** The editor. Tab leaves it; Ctrl and a bracket indents, and Enter continues the indentation. */
export function Editor({ state }: { state: AppState }) {
  const { plan } = state;
  const [line, setLine] = useState(0);
  const text = plan.text.value;
  const lines = text.split("\n");
  const found = marksOf([...plan.findings.value, ...hiddenIn(text)]);
  const marks = new Map(found.map((mark) => [mark.line, mark]));
  const follow = ({ currentTarget: box }: { currentTarget: HTMLTextAreaElement }) =>
    setLine(lineAt(box.value, box.selectionStart));
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    const { currentTarget: box, code, key, ctrlKey, metaKey, shiftKey } = event;
    const { value, selectionStart: start, selectionEnd: end } = box;
    if (key === "Enter" && (ctrlKey || metaKey)) {
      event.preventDefault();
      if (state.what_if.value) state.runWhatIf();
      else state.run();
    } else if (key === "Enter" && !shiftKey && !event.isComposing) {
      event.preventDefault();
      apply(box, newLine(value, start, end));
    } else if (ctrlKey && (code === "BracketRight" || code === "BracketLeft")) {
      event.preventDefault();
      const edit = indent(value, start, end, code === "BracketRight");
      if (edit) apply(box, edit);
    }
  };
  return (
    <div class="editor scroll">
      <div class="lines" aria-hidden="true">
        {lines.map((content, at) => {
          const mark = marks.get(at + 1);
          return (
            <div class={mark?.level} key={at}>
              {mark && (
                <span
                  class="mark"
                  title={mark.text}
                  onMouseEnter={() => setLine(mark.line)}
                  onMouseLeave={() => setLine(0)}
                >
                  {mark.level === "error" ? "✗" : "!"}
                </span>
              )}
              <span class="copy" data-text={content || " "} />
              {mark && mark.line === line && <div class={`at-line ${mark.level}`}>{visible(mark.text)}</div>}
            </div>
          );
        })}
      </div>
      <textarea
        id={ID}
        aria-label="Plan, as YAML or JSON"
        aria-describedby="plan-keys"
        aria-invalid={plan.phase.value === "invalid"}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        value={text}
        onInput={(event) => {
          plan.edit(event.currentTarget.value);
          follow(event);
        }}
        onKeyDown={onKeyDown}
        onKeyUp={follow}
        onClick={follow}
        onFocus={follow}
        onBlur={() => setLine(0)}
      />
      <div id="plan-keys" class="hidden-text">
        Control and right bracket indents, Control and left bracket takes it back, Control and Enter runs.
      </div>
    </div>
  );
}

/** Edits the text in a way that the browser can undo. */
function apply(box: HTMLTextAreaElement, { from, to, text, selection }: Edit): void {
  box.setSelectionRange(from, to);
  document.execCommand("insertText", false, text);
  box.setSelectionRange(...selection);
}
