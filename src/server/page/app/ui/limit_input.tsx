/** The box for a new value of a limit. */

/** A labelled box; a number, or an amount in dollars. */
export function LimitInput({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return (
    <label class="row">
      new limit
      <input
        inputMode="decimal"
        pattern="[0-9]+([.][0-9]+)?"
        title="a number"
        size={9}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
