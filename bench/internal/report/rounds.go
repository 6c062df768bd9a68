package report

// Rotate calls run for every subject in every round, each round beginning with another subject, so that a machine whose speed
// drifts favours nobody.
func Rotate[S any](rounds int, subjects []S, run func(round int, subject S) error) error {
	for r := range rounds {
		for i := range subjects {
			if err := run(r, subjects[(i+r)%len(subjects)]); err != nil {
				return err
			}
		}
	}
	return nil
}
